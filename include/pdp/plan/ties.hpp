#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// Returns whether the layers of a unit include one that shares its parameter.
[[nodiscard]] constexpr bool is_tied(const Outline& model, const Unit& unit) {
  for (int layer = unit.first; layer < unit.last; ++layer)
    if (model.is_tied(layer)) return true;
  return false;
}
/// Returns whether a unit has a layer that shares its parameter, and other layers with parameters.
[[nodiscard]] constexpr bool is_tied_among_others(const Outline& model, const Unit& unit) {
  return is_tied(model, unit) && model.elements(unit.first, unit.last) != model.elements(0, 1);
}

/// Returns whether a plan adds up the gradients of two layers that share a parameter.
[[nodiscard]] constexpr bool adds_tied(const Plan& plan) {
  return std::any_of(plan.step.begin(), plan.step.end(), [](const Instruction& i) { return i.op == Op::add_tied || i.op == Op::sum_tied; });
}

namespace detail {

/// Puts the sum of the gradients of two units into a step: behind all other communication, but before the norm if the plan has one. Moves
/// the updates of these units, and the gathers that follow them, behind the sum. `units`: -1 for a unit that this rank does not have.
constexpr Instructions with_sum_of(const Plan& plan, const std::array<int, 2>& units, const Instruction& sum) {
  const auto norm = std::find_if(plan.step.begin(), plan.step.end(), [](const Instruction& i) { return i.op == Op::norm_start; });
  Instructions list, moved;
  std::array<bool, 2> is_updated{};
  for (auto at = plan.step.begin(); at != norm; ++at) {
    bool follows = false;
    for (std::size_t each = 0; each < units.size(); ++each) {
      if (units[each] < 0 || at->unit != units[each]) continue;
      is_updated[each] = is_updated[each] || at->op == Op::update;
      follows = is_updated[each] && (at->op == Op::update || at->op == Op::gather_start || at->op == Op::gather_wait);
    }
    (follows ? moved : list).push_back(*at);
  }
  list.push_back(sum);
  list.insert(list.end(), moved.begin(), moved.end());
  list.insert(list.end(), norm, plan.step.end());
  return list;
}

}  // namespace detail

/// Returns a plan that adds up the gradients of the two layers that share a parameter (nn::TiedOutput): on this rank if it has both, else
/// over a group of the two ranks that have one each. Every rank appends this group to those of its plan. Accepts the plan of any strategy
/// that has each of the two layers in a unit of its own; a plan that has the sum already is not changed. Throws PlanError if a unit of
/// these layers has other parameters.
[[nodiscard]] constexpr Plan with_ties(const Outline& model, Plan plan, RankInWorld at) {
  if (!model.is_tied(0) || plan.tied_group >= 0 || adds_tied(plan)) return plan;
  for (const Unit& unit : plan.units) {
    if (is_tied_among_others(model, unit))
      throw PlanError{text("layers ", unit.first, " to ", unit.last - 1,
                           " of the model (counted from 0) are in one unit of the plan, but one of them shares its parameter with another "
                           "layer; put that layer into a unit of its own, as plan::units_by_size does")};
  }
  const std::array units{unit_of(plan, 0), unit_of(plan, model.tied_output)};
  const bool has_both = units[0] >= 0 && units[1] >= 0, has_one = !has_both && (units[0] >= 0 || units[1] >= 0);
  if (at.size > 1) {  // a rank without a partner is alone in its group
    const int pairs = plan.share.count * plan.tensor.count, own_pair = plan.share.index * plan.tensor.count + plan.tensor.index;
    plan.groups.push_back({has_one ? own_pair : pairs + at.rank, units[0] >= 0 ? 0 : 1});
    plan.tied_group = as_int(plan.groups.size());
  }
  if (has_both) plan.step = detail::with_sum_of(plan, units, add_tied(0, model.tied_output));
  if (has_one) plan.step = detail::with_sum_of(plan, units, on_unit(Op::sum_tied, std::max(units[0], units[1]), plan.tied_group));
  return plan;
}

}  // namespace pdp::plan
