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
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// What the ranks of a group do with units of a worker's parameters: reduce their gradients, update slices of them, and gather them. By
/// calls, or, where the ranks see each other's memory, by waiting for each other: then it is the update that adds up and hands on.
///
/// A reduction, or a gathering, is started, its Work is waited for, and it is ended. Borrows all that it is made of.
template <comm::Communicator C, class W, class Reduced>
class UnitCalls {
  using T = typename W::T;
  using Gradient = typename W::Gradient;  // of a parameter, as it is computed and applied; it travels as Reduced
  using Stage = typename W::Stage;
  using Memory = UnitMemory<C, typename Stage::Device, T, Reduced>;
  using Work = typename C::Work;
  static constexpr bool rounds = !std::same_as<Reduced, Gradient>;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

 public:
  /// Every rank of each group makes this call, where gradients are rounded.
  UnitCalls(const Groups<C>& groups, const plan::Plan& plan, Memory& memory, W& worker)
      : plan_{plan},
        memory_{memory},
        worker_{worker},
        takes_norm_{takes_norm(plan.step)},
        marks_(plan.units.size()),
        reductions_(plan.units.size()),
        gathers_(plan.units.size()) {
    if constexpr (rounds) rounded_ = {worker.stage(), plan, groups};
  }

  /// Each rank gets the sum of a unit's gradients, or its slice of it.
  void start_reduction(C& group, const plan::Instruction& i) { reduction_work(i) = reduce(group, i); }
  [[nodiscard]] Work& reduction_work(const plan::Instruction& i) { return reductions_[as_size(i.unit)]; }
  void end_reduction(const plan::Instruction& i) {
    check_met(i);
    if (is_common(i)) {
      if (takes_norm_) memory_.reduce(stage().device(), i.unit, stage().own_gradients(i.unit));
      return;
    }
    if constexpr (rounds) {
      const std::span<Gradient> to = is_whole(i) ? stage().gradients(i.unit) : sum_of(i);
      rounded_.spread(stage(), is_whole(i) ? rounded_.whole(i.unit, to.size()) : rounded_.own(stage(), i.unit), to);
    }
    if (i.accumulate) worker_.add_scratch(i.unit);
  }

  /// Each rank gets all of a unit's parameters, of which every rank of the group has a slice.
  void start_gathering(C& group, const plan::Instruction& i) { gathering_work(i) = gather(group, i); }
  [[nodiscard]] Work& gathering_work(const plan::Instruction& i) { return gathers_[as_size(i.unit)]; }
  /// Throws PlanError where the ranks have waited for each other at different units; nothing else is left to do.
  void end_gathering(const plan::Instruction& i) const { check_met(i); }

  /// Of this rank's slice of a unit: in common memory by the gradients of all ranks, unless the norm of their sum was wanted before.
  void update(int unit) {
    worker_.apply(unit, takes_norm_ ? std::span<const Gradient* const>{} : memory_.gradients(unit), memory_.others_values(unit));
  }

 private:
  [[nodiscard]] Stage& stage() const { return worker_.stage(); }
  [[nodiscard]] bool is_whole(const plan::Instruction& i) const { return plan_.units[as_size(i.unit)].sharding == plan::Sharding::none; }
  /// Whether what a group does with a unit is done in memory that all of it see.
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
  /// Where the sum of this rank's slice comes.
  [[nodiscard]] std::span<Gradient> sum_of(const plan::Instruction& i) {
    return i.accumulate ? worker_.scratch(i.unit) : stage().own_gradients(i.unit);
  }

  /// Waits for the ranks of a group at a unit, of which each has to be at the same one. All of them learn the least mark and the greatest,
  /// so that where these differ none goes on to look at what another still writes.
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
  bool takes_norm_;  // of the whole gradient, before it is applied
  RoundedGradients<C, typename Stage::Device, T, Reduced> rounded_;
  std::vector<std::array<std::int64_t, 2>> marks_;  // of units: the greatest, and the least negated
  std::vector<Work> reductions_, gathers_;          // of units; last, so that they are let go of before what they borrow
};

}  // namespace pdp::engine
