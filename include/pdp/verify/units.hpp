#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>
#include <pdp/verify/group_table.hpp>

namespace pdp::plan::detail {

/// The units of one rank in a rehearsal: whether their parameters are available, and whether their gradients are computed and reduced. A
/// function that checks an instruction returns why it is not valid, or null.
class RehearsedUnits {
 public:
  constexpr RehearsedUnits(const Outline& model, const Plan& plan, const GroupTable& groups, int rank)
      : model_{&model}, plan_{&plan}, groups_{&groups}, rank_{rank}, computed_(as_size(model.size()), 0), fresh_(computed_) {
    for (const Unit& unit : plan.units)
      states_.push_back(
          {.present = unit.sharding != Sharding::parameters, .has_others = unit.group >= 0 && groups.members(rank, unit.group).size() > 1});
  }

  [[nodiscard]] constexpr int size() const { return as_int(states_.size()); }

  /// Checks an instruction that computes with parameters or with their gradients.
  [[nodiscard]] constexpr const char* use_parameters(const Instruction& i) const {
    for (int u = 0; u < size(); ++u) {
      if (!reads(i, unit(u))) continue;
      if (!state(u).present) return "needs parameters that are not gathered";
      if (state(u).updated) return "computes with parameters after their update";
      if (unit(u).sharding == Sharding::state && (state(u).reducing || state(u).reductions > 0))
        return "computes with parameters that other ranks may change, as the reduction of their gradients has started";
    }
    for (int layer = i.first; layer < i.last; ++layer)
      if (has_parameters(layer) && !holds(layer)) return "needs parameters that the rank does not hold";
    return nullptr;
  }
  /// Checks that a micro-batch may add to the gradients of a layer.
  [[nodiscard]] constexpr const char* may_add_gradients(int layer, bool accumulate) const {
    if (accumulate != (fresh_[as_size(layer)] > 0))
      return accumulate ? "adds to the gradient of an earlier step: the first micro-batch must not accumulate"
                        : "overwrites the gradient of an earlier micro-batch: all but the first must accumulate";
    return changes_reduced(layer) ? "changes a gradient that is being reduced, or still has to be" : nullptr;
  }
  constexpr void add_gradients(int layer) {
    ++fresh_[as_size(layer)];
    ++computed_[as_size(layer)];
  }

  constexpr const char* start_reduction(const Instruction& i) {
    const Unit& spec = unit(i.unit);
    State& own = state(i.unit);
    if (spec.group != i.group) return "reduces a unit over a group other than its own";
    if (own.reducing) return "reduces a unit that is being reduced already";
    if (spec.sharding < Sharding::gradients) {
      if (own.reductions > 0) return "reduces a unit twice";
      if (!is_complete(spec)) return "comes before the gradients of all micro-batches are computed";
      if (i.accumulate) return "adds to the gradient of an earlier step: the first reduction must not accumulate";
    } else if (const char* reason = give_to_slices(spec, i.accumulate, own.reductions > 0); reason != nullptr) {
      return reason;
    }
    own.reducing = true;
    return nullptr;
  }
  constexpr const char* end_reduction(const Instruction& i) {
    State& own = state(i.unit);
    if (i.accumulate != (own.reductions > 0)) return "has another accumulate flag than its start";
    own.reducing = false;
    ++own.reductions;
    return nullptr;
  }

  /// Check a sum of the gradients of two layers that share a parameter: on this rank, or over a group.
  constexpr const char* add_tied(const Instruction& i) {
    const std::array both{unit_of(*plan_, i.first), unit_of(*plan_, i.last)};
    if (!model_->is_tied(0) || i.first != 0 || i.last != model_->tied_output) return "names layers that do not share a parameter";
    if (both[0] < 0 || both[1] < 0) return "names a layer that the rank does not hold";
    const Unit &one = unit(both[0]), &other = unit(both[1]);
    if (one.sharding != other.sharding || one.slices != other.slices || one.slice != other.slice)
      return "adds up different slices of the two gradients";
    for (const int number : both)
      if (const char* reason = take_tied(number); reason != nullptr) return reason;
    return nullptr;
  }
  constexpr const char* sum_tied(const Instruction& i) {
    if (!is_tied(*model_, unit(i.unit))) return "adds up the gradient of a layer that shares no parameter";
    if (unit_of(*plan_, 0) >= 0 && unit_of(*plan_, model_->tied_output) >= 0) return "lacks the gradient of the rank's other layer";
    if (groups_->members(rank_, i.group).size() != 2) return "uses a group of other than two ranks, which have one of the two layers each";
    return take_tied(i.unit);
  }

  constexpr const char* start_gathering(const Instruction& i) {
    const Unit& spec = unit(i.unit);
    if (spec.sharding == Sharding::none) return "gathers a unit that is not sharded";
    if (spec.group != i.group) return "gathers a unit over a group other than its own";
    for (int u = 0; u < size() && spec.sharding == Sharding::parameters; ++u) {
      if (unit(u).sharding != Sharding::parameters || unit(u).buffer != spec.buffer) continue;
      if (state(u).gathering) return "gathers into a buffer that another gather uses";
      state(u).present = false;
    }
    state(i.unit).gathering = true;
    return nullptr;
  }
  constexpr void end_gathering(const Instruction& i) {
    state(i.unit).gathering = false;
    state(i.unit).present = true;
  }
  [[nodiscard]] constexpr const char* broadcast(const Instruction& i) const {
    return unit(i.unit).sharding == Sharding::parameters ? "broadcasts a unit whose parameters are sharded" : nullptr;
  }

  /// `lacks_norm`: the plan takes the norm of the whole gradient, but the norm is not known yet.
  constexpr const char* update(const Instruction& i, bool lacks_norm) {
    State& own = state(i.unit);
    if (const char* reason = missing_gradients(i.unit); reason != nullptr) return reason;
    if (lacks_norm) return "comes before the norm of the whole gradient is known";
    if (own.gathering) return "changes parameters that are being gathered";
    if (own.updated) return "applies the same gradient twice";
    own.updated = true;
    if (unit(i.unit).sharding != Sharding::none) own.present = false;
    return nullptr;
  }
  /// Returns why the gradients of some unit do not cover the whole batch yet, or null.
  [[nodiscard]] constexpr const char* missing_gradients() const {
    for (int u = 0; u < size(); ++u)
      if (const char* reason = missing_gradients(u); reason != nullptr) return reason;
    return nullptr;
  }

  /// is_gathering() and left_over() find work that is unfinished at the end of a list.
  [[nodiscard]] constexpr bool is_gathering() const {
    return std::any_of(states_.begin(), states_.end(), [](const State& each) { return each.gathering; });
  }
  [[nodiscard]] constexpr const char* left_over() const {
    for (int u = 0; u < size(); ++u) {
      if (!is_complete(unit(u))) return "leaves layers whose gradients are never computed";
      if (state(u).reducing) return "leaves a reduction that is never waited for";
      if (!state(u).updated && !is_frozen(*model_, unit(u))) return "leaves a unit that is never updated";
      if (!state(u).present && unit(u).sharding < Sharding::parameters)
        return "leaves parameters that are never gathered after their update";
    }
    return nullptr;
  }

 private:
  struct State {
    bool present = true;      // all of its parameters are available and up to date
    bool has_others = false;  // other ranks hold it, too
    bool gathering = false;
    bool reducing = false;  // a reduction is in flight
    int reductions = 0;     // number of complete reductions
    bool tied = false;      // the gradient of the layer that shares its parameter is added
    bool updated = false;
  };

  [[nodiscard]] constexpr const Unit& unit(int number) const { return plan_->units[as_size(number)]; }
  constexpr State& state(int number) { return states_[as_size(number)]; }
  [[nodiscard]] constexpr const State& state(int number) const { return states_[as_size(number)]; }
  [[nodiscard]] constexpr bool has_parameters(int layer) const { return model_->layers[as_size(layer)].parameters > 0; }
  [[nodiscard]] constexpr bool reads(const Instruction& i, const Unit& unit) const {
    if (!reads_parameters(i, unit.first, unit.last)) return false;
    for (int layer = std::max<int>(i.first, unit.first); layer < std::min<int>(i.last, unit.last); ++layer)
      if (has_parameters(layer) && (i.op != Op::backward_input || model_->passes_gradient(layer))) return true;
    return false;
  }
  [[nodiscard]] constexpr bool holds(int layer) const {
    for (const Unit& unit : plan_->units)
      if (unit.first <= layer && layer < unit.last) return true;
    return false;
  }

  [[nodiscard]] constexpr const char* missing_gradients(int number) const {
    if (const char* reason = unreduced_gradients(number); reason != nullptr) return reason;
    if (is_tied(*model_, unit(number)) && !state(number).tied)
      return "comes before the gradients of the two layers that share a parameter are added up";
    return nullptr;
  }
  /// Records that the gradient of a unit is part of the sum of both layers that share a parameter.
  constexpr const char* take_tied(int number) {
    if (const char* reason = unreduced_gradients(number); reason != nullptr) return reason;
    return std::exchange(state(number).tied, true) ? "adds up the gradients of the two layers that share a parameter twice" : nullptr;
  }
  [[nodiscard]] constexpr const char* unreduced_gradients(int number) const {
    const State& own = state(number);
    if (!is_complete(unit(number))) return "comes before the gradients of all micro-batches are computed";
    if (own.has_others && !is_frozen(*model_, unit(number)) && (own.reductions == 0 || own.reducing || is_left_out(unit(number))))
      return "comes before the gradients are summed over all ranks";
    return nullptr;
  }
  [[nodiscard]] constexpr bool is_complete(const Unit& unit) const {
    for (int layer = unit.first; layer < unit.last; ++layer)
      if (model_->trains(layer) && computed_[as_size(layer)] != plan_->micro_batches) return false;
    return true;
  }
  /// Returns whether the slices of a unit lack gradients that this rank has computed.
  [[nodiscard]] constexpr bool is_left_out(const Unit& unit) const {
    if (unit.sharding < Sharding::gradients) return false;
    for (int layer = unit.first; layer < unit.last; ++layer)
      if (model_->trains(layer) && fresh_[as_size(layer)] > 0) return true;
    return false;
  }
  /// Records a reduction to slices, which takes the gradients computed since the previous reduction. Returns why it is not valid, or null.
  constexpr const char* give_to_slices(const Unit& spec, bool accumulate, bool is_later) {
    int least = -1;
    for (int layer = spec.first; layer < spec.last; ++layer) {
      int& fresh = fresh_[as_size(layer)];
      if (model_->trains(layer)) {
        if (fresh == 0 || (least >= 0 && fresh != least)) return "comes before the gradients of all its layers are computed";
        least = fresh;
      }
      fresh = 0;
    }
    if (accumulate == is_later) return nullptr;
    return accumulate ? "adds to the gradient of an earlier step: the first reduction must not accumulate"
                      : "overwrites the gradient of an earlier micro-batch: all reductions but the first must accumulate";
  }
  /// Returns whether the gradient of a layer must not change any more: a reduction uses its memory or still has to read it, or the unit has
  /// been reduced for the last time.
  [[nodiscard]] constexpr bool changes_reduced(int layer) const {
    for (const Unit& own : plan_->units) {
      if (layer < own.first || layer >= own.last) continue;
      for (int u = 0; u < size(); ++u) {
        const bool same = unit(u).first == own.first;
        if (own.sharding < Sharding::gradients) {
          if (same && (state(u).reducing || state(u).reductions > 0)) return true;
        } else if (unit(u).sharding >= Sharding::gradients && unit(u).buffer == own.buffer) {
          if (state(u).reducing || (!same && is_left_out(unit(u)))) return true;
        }
      }
    }
    return false;
  }

  const Outline* model_;
  const Plan* plan_;
  const GroupTable* groups_;
  int rank_;
  std::vector<State> states_;
  std::vector<int> computed_;  // [layer]: number of micro-batches whose gradient is computed
  std::vector<int> fresh_;     // [layer]: number of micro-batches in its gradient that have not been reduced to slices yet
};

}  // namespace pdp::plan::detail
