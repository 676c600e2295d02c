#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/engine/rounded.hpp>
#include <pdp/engine/slice_sums.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>

namespace pdp::engine {

/// The collective operations of a group on units: reducing gradients and gathering parameters. If the ranks see each other's memory, each
/// of the two is only a rendezvous: the update reads the gradients of all ranks and writes the parameters of all ranks.
///
/// A reduction or a gathering has three parts: the start, the wait for its Work, and the end. Borrows all arguments of the constructor.
template <comm::Communicator C, class D, class T, class Reduced>
class UnitCalls {
  using Gradient = Accumulated<T>;  // the type in which gradients are computed and applied; they are sent as Reduced
  using Stage = nn::StageParameters<D, T>;
  using Memory = UnitMemory<C, D, T, Reduced>;
  using Work = typename C::Work;
  static constexpr bool rounds = !std::same_as<Reduced, Gradient>;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

 public:
  /// Every rank of each group makes this call if gradients are rounded.
  UnitCalls(const Groups<C>& groups, const plan::Plan& plan, Memory& memory, Stage& stage);
  UnitCalls(const UnitCalls&) = delete;
  UnitCalls& operator=(const UnitCalls&) = delete;
  ~UnitCalls();

  /// Starts a reduction, by which each rank gets the sum of a unit's gradients, or its slice of it.
  void start_reduction(C& group, const plan::Instruction& i) { reduction_work(i) = reduce(group, i); }
  [[nodiscard]] Work& reduction_work(const plan::Instruction& i) { return reductions_[as_size(i.unit)]; }
  void end_reduction(const plan::Instruction& i);

  /// Starts to gather all of a unit's parameters on each rank, from the slices of all ranks of the group.
  void start_gathering(C& group, const plan::Instruction& i) { gathering_work(i) = gather(group, i); }
  [[nodiscard]] Work& gathering_work(const plan::Instruction& i) { return gathers_[as_size(i.unit)]; }
  /// Throws PlanError if the ranks were at different units in the rendezvous. Does nothing else.
  void end_gathering(const plan::Instruction& i) const { check_met(i); }

  /// Adds up this rank's slices of the gradients of two layers that share a parameter, and gives both the sum.
  void add_tied(const plan::Instruction& i);

  /// Returns the gradients of all ranks whose sum updates a unit in common memory, unless end_reduction() has already added them up. None:
  /// the rank's own gradients update it.
  [[nodiscard]] std::span<const Gradient* const> gradients_to_add(int unit) const {
    return adds_first(unit) ? std::span<const Gradient* const>{} : memory_.gradients(unit);
  }
  /// Returns pointers to this rank's slice of a unit in the memory of the other ranks. The update writes the new parameters there, too.
  [[nodiscard]] std::span<T* const> others_values(int unit) const { return memory_.others_values(unit); }

 private:
  /// Returns whether the sum of a unit's gradients over the ranks is needed before its update.
  [[nodiscard]] bool adds_first(int unit) const { return takes_norm_ || plan::is_tied(stage_.outline(), plan_.units[as_size(unit)]); }
  [[nodiscard]] bool is_whole(const plan::Instruction& i) const { return plan_.units[as_size(i.unit)].sharding == plan::Sharding::none; }
  /// Returns whether the group works on a unit in memory that all its ranks see.
  [[nodiscard]] bool is_common(const plan::Instruction& i) const { return sees_memory && memory_.is_common(i.unit); }

  Work reduce(C& group, const plan::Instruction& i);
  Work gather(C& group, const plan::Instruction& i);
  /// Returns the memory for the sum of this rank's slice: that of the gradients, or scratch memory if i.accumulate. Then end_reduction()
  /// adds it to the gradients.
  [[nodiscard]] std::span<Gradient> sum_of(const plan::Instruction& i) {
    const std::span<Gradient> own = stage_.own_gradients(i.unit);
    return i.accumulate ? sums_[i.unit].first(own.size()) : own;
  }

  /// Starts a rendezvous of the ranks of a group, which must all be at the same unit. A mark identifies the unit (see UnitMemory::mark).
  /// Every rank learns the smallest and the largest mark. If these differ, no rank goes on to read memory that another one still writes.
  Work meet(C& group, const plan::Instruction& i);
  void check_met(const plan::Instruction& i) const;

  const plan::Plan& plan_;
  Memory& memory_;
  Stage& stage_;
  SliceSums<D, T> sums_;
  bool takes_norm_;  // whether the plan takes the norm of the whole gradient before updates
  RoundedGradients<C, D, T, Reduced> rounded_;
  std::vector<std::array<std::int64_t, 2>> marks_;  // [unit]: the largest mark, and the smallest negated
  std::vector<Work> reductions_, gathers_;          // [unit]; last, so that they are destroyed before what they borrow
};

template <comm::Communicator C, class D, class T, class Reduced>
UnitCalls<C, D, T, Reduced>::UnitCalls(const Groups<C>& groups, const plan::Plan& plan, Memory& memory, Stage& stage)
    : plan_{plan},
      memory_{memory},
      stage_{stage},
      sums_{stage.device(), plan, stage.outline(), memory.lent_scratch()},
      takes_norm_{takes_norm(plan.step)},
      marks_(plan.units.size()),
      reductions_(plan.units.size()),
      gathers_(plan.units.size()) {
  for (const plan::Instruction& i : plan.step)
    if (i.op == plan::Op::update && plan::is_tied(stage.outline(), plan.units[as_size(i.unit)]) && !plan::adds_tied(plan))
      the_plan_does_not_add_up_tied_gradients();
  if constexpr (rounds) rounded_ = {stage, plan, groups};
}

template <comm::Communicator C, class D, class T, class Reduced>
UnitCalls<C, D, T, Reduced>::~UnitCalls() = default;

template <comm::Communicator C, class D, class T, class Reduced>
void UnitCalls<C, D, T, Reduced>::end_reduction(const plan::Instruction& i) {
  check_met(i);
  if (is_common(i)) {
    if (adds_first(i.unit)) memory_.reduce(stage_.device(), i.unit, stage_.own_gradients(i.unit));
    return;
  }
  if constexpr (rounds) {
    const std::span<Gradient> to = is_whole(i) ? stage_.gradients(i.unit) : sum_of(i);
    rounded_.spread(stage_, is_whole(i) ? rounded_.whole(i.unit, to.size()) : rounded_.own(stage_, i.unit), to);
  }
  if (!i.accumulate) return;
  const std::span<Gradient> own = stage_.own_gradients(i.unit);
  const Matrix<Gradient> sum{own.data(), 1, as_index(own.size())};
  add(stage_.device(), Matrix<const Gradient>{sum}, Matrix<const Gradient>{sum_of(i).data(), 1, sum.cols}, sum);
}

template <comm::Communicator C, class D, class T, class Reduced>
void UnitCalls<C, D, T, Reduced>::add_tied(const plan::Instruction& i) {
  const std::span<Gradient> one = stage_.own_gradients(plan::unit_of(plan_, i.first));
  const std::span<Gradient> other = stage_.own_gradients(plan::unit_of(plan_, i.last));
  const Matrix<Gradient> sum{one.data(), 1, as_index(one.size())};
  add(stage_.device(), Matrix<const Gradient>{sum}, Matrix<const Gradient>{other.data(), 1, sum.cols}, sum);
  copy(stage_.device(), std::span<const Gradient>{one}, other.data());
}

template <comm::Communicator C, class D, class T, class Reduced>
auto UnitCalls<C, D, T, Reduced>::reduce(C& group, const plan::Instruction& i) -> Work {
  if constexpr (sees_memory)
    if (is_common(i)) return meet(group, i);
  if constexpr (rounds) {
    const std::span<Reduced> all = rounded_.round(stage_, i.unit);
    return is_whole(i) ? start_all_reduce(group, stage_.device(), all)
                       : start_reduce_scatter(group, stage_.device(), std::span<const Reduced>{all}, rounded_.own(stage_, i.unit));
  } else {
    const std::span<Gradient> all = stage_.gradients(i.unit);
    return is_whole(i) ? start_all_reduce(group, stage_.device(), all)
                       : start_reduce_scatter(group, stage_.device(), std::span<const Gradient>{all}, sum_of(i));
  }
}

template <comm::Communicator C, class D, class T, class Reduced>
auto UnitCalls<C, D, T, Reduced>::gather(C& group, const plan::Instruction& i) -> Work {
  if constexpr (sees_memory)
    if (is_common(i)) return meet(group, i);
  return start_all_gather(group, stage_.device(), std::span<const T>{stage_.own_values(i.unit)}, stage_.values(i.unit));
}

template <comm::Communicator C, class D, class T, class Reduced>
auto UnitCalls<C, D, T, Reduced>::meet(C& group, const plan::Instruction& i) -> Work {
  std::array<std::int64_t, 2>& marks = marks_[as_size(i.unit)];
  const std::int64_t mark = 2 * memory_.mark(i.unit) + (i.op == plan::Op::reduce_start ? 0 : 1);
  marks = {mark, -mark};
  return group.all_reduce_async(std::span{marks}, comm::Max{});
}

template <comm::Communicator C, class D, class T, class Reduced>
void UnitCalls<C, D, T, Reduced>::check_met(const plan::Instruction& i) const {
  const auto [greatest, negated_least] = marks_[as_size(i.unit)];
  if (is_common(i) && greatest != -negated_least) ranks_are_at_different_units(i);
}

}  // namespace pdp::engine
