#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/engine/rounded.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>

namespace pdp::engine {

/// The collective operations on units of a worker's parameters: reducing gradients, updating slices and gathering parameters. Reducing and
/// gathering are collectives of a group. If the ranks see each other's memory, each of the two is only a rendezvous: the update reads the
/// gradients of all ranks and writes the parameters of all ranks.
///
/// A reduction or a gathering has three parts: the start, the wait for its Work, and the end. Borrows all arguments of the constructor.
template <comm::Communicator C, class W, class Reduced>
class UnitCalls {
  using T = typename W::T;
  using Gradient = typename W::Gradient;  // the type in which gradients are computed and applied; they are sent as Reduced
  using Stage = typename W::Stage;
  using Memory = UnitMemory<C, typename Stage::Device, T, Reduced>;
  using Work = typename C::Work;
  static constexpr bool rounds = !std::same_as<Reduced, Gradient>;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

 public:
  /// Every rank of each group makes this call if gradients are rounded.
  UnitCalls(const Groups<C>& groups, const plan::Plan& plan, Memory& memory, W& worker)
      : plan_{plan},
        memory_{memory},
        worker_{worker},
        takes_norm_{takes_norm(plan.step)},
        marks_(plan.units.size()),
        reductions_(plan.units.size()),
        gathers_(plan.units.size()) {
    const auto& model = worker.stage().outline();
    for (const plan::Instruction& i : plan.step)
      if (i.op == plan::Op::update && plan::is_tied(model, plan.units[as_size(i.unit)]) && !plan::adds_tied(plan))
        the_plan_does_not_add_up_tied_gradients();
    if constexpr (rounds) rounded_ = {worker.stage(), plan, groups};
  }

  /// Starts a reduction, by which each rank gets the sum of a unit's gradients, or its slice of it.
  void start_reduction(C& group, const plan::Instruction& i) { reduction_work(i) = reduce(group, i); }
  [[nodiscard]] Work& reduction_work(const plan::Instruction& i) { return reductions_[as_size(i.unit)]; }
  void end_reduction(const plan::Instruction& i) {
    check_met(i);
    if (is_common(i)) {
      if (adds_first(i.unit)) memory_.reduce(stage().device(), i.unit, stage().own_gradients(i.unit));
      return;
    }
    if constexpr (rounds) {
      const std::span<Gradient> to = is_whole(i) ? stage().gradients(i.unit) : sum_of(i);
      rounded_.spread(stage(), is_whole(i) ? rounded_.whole(i.unit, to.size()) : rounded_.own(stage(), i.unit), to);
    }
    if (i.accumulate) worker_.add_scratch(i.unit);
  }

  /// Starts to gather all of a unit's parameters on each rank, from the slices of all ranks of the group.
  void start_gathering(C& group, const plan::Instruction& i) { gathering_work(i) = gather(group, i); }
  [[nodiscard]] Work& gathering_work(const plan::Instruction& i) { return gathers_[as_size(i.unit)]; }
  /// Throws PlanError if the ranks were at different units in the rendezvous. Does nothing else.
  void end_gathering(const plan::Instruction& i) const { check_met(i); }

  /// Adds up this rank's slices of the gradients of two layers that share a parameter, and gives both the sum.
  void add_tied(const plan::Instruction& i) {
    const std::span<Gradient> one = stage().own_gradients(plan::unit_of(plan_, i.first));
    const std::span<Gradient> other = stage().own_gradients(plan::unit_of(plan_, i.last));
    const Matrix<Gradient> sum{one.data(), 1, as_index(one.size())};
    add(stage().device(), Matrix<const Gradient>{sum}, Matrix<const Gradient>{other.data(), 1, sum.cols}, sum);
    copy(stage().device(), std::span<const Gradient>{one}, other.data());
  }

  /// Updates this rank's slice of a unit. In common memory it adds up the gradients of all ranks, unless end_reduction() has already done
  /// so.
  void update(int unit) {
    worker_.apply(unit, adds_first(unit) ? std::span<const Gradient* const>{} : memory_.gradients(unit), memory_.others_values(unit));
  }

 private:
  [[nodiscard]] Stage& stage() const { return worker_.stage(); }
  /// Returns whether the sum of a unit's gradients over the ranks is needed before its update.
  [[nodiscard]] bool adds_first(int unit) const { return takes_norm_ || plan::is_tied(stage().outline(), plan_.units[as_size(unit)]); }
  [[nodiscard]] bool is_whole(const plan::Instruction& i) const { return plan_.units[as_size(i.unit)].sharding == plan::Sharding::none; }
  /// Returns whether the group works on a unit in memory that all its ranks see.
  [[nodiscard]] bool is_common(const plan::Instruction& i) const { return sees_memory && memory_.is_common(i.unit); }

  Work reduce(C& group, const plan::Instruction& i) {
    if constexpr (sees_memory)
      if (is_common(i)) return meet(group, i);
    if constexpr (rounds) {
      const std::span<Reduced> all = rounded_.round(stage(), i.unit);
      return is_whole(i) ? start_all_reduce(group, stage().device(), all)
                         : start_reduce_scatter(group, stage().device(), std::span<const Reduced>{all}, rounded_.own(stage(), i.unit));
    } else {
      const std::span<Gradient> all = stage().gradients(i.unit);
      return is_whole(i) ? start_all_reduce(group, stage().device(), all)
                         : start_reduce_scatter(group, stage().device(), std::span<const Gradient>{all}, sum_of(i));
    }
  }
  Work gather(C& group, const plan::Instruction& i) {
    if constexpr (sees_memory)
      if (is_common(i)) return meet(group, i);
    return start_all_gather(group, stage().device(), std::span<const T>{stage().own_values(i.unit)}, stage().values(i.unit));
  }
  /// Returns the memory for the sum of this rank's slice.
  [[nodiscard]] std::span<Gradient> sum_of(const plan::Instruction& i) {
    return i.accumulate ? worker_.scratch(i.unit) : stage().own_gradients(i.unit);
  }

  /// Starts a rendezvous of the ranks of a group, which must all be at the same unit. A mark identifies the unit (see UnitMemory::mark).
  /// Every rank learns the smallest and the largest mark. If these differ, no rank goes on to read memory that another one still writes.
  Work meet(C& group, const plan::Instruction& i) {
    std::array<std::int64_t, 2>& marks = marks_[as_size(i.unit)];
    marks = {mark_of(i), -mark_of(i)};
    return group.all_reduce_async(std::span{marks}, comm::Max{});
  }
  void check_met(const plan::Instruction& i) const {
    const auto [greatest, negated_least] = marks_[as_size(i.unit)];
    if (is_common(i) && greatest != -negated_least) ranks_are_at_different_units(i);
  }
  [[nodiscard]] std::int64_t mark_of(const plan::Instruction& i) const {
    return 2 * memory_.mark(i.unit) + (i.op == plan::Op::reduce_start ? 0 : 1);
  }

  const plan::Plan& plan_;
  Memory& memory_;
  W& worker_;
  bool takes_norm_;  // whether the plan takes the norm of the whole gradient before updates
  RoundedGradients<C, typename Stage::Device, T, Reduced> rounded_;
  std::vector<std::array<std::int64_t, 2>> marks_;  // [unit]: the largest mark, and the smallest negated
  std::vector<Work> reductions_, gathers_;          // [unit]; last, so that they are destroyed before what they borrow
};

}  // namespace pdp::engine
