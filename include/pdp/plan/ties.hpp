#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/effects.hpp>
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

namespace detail {

/// Puts an instruction into a step, behind the last reduction of two units and as near to their first update as possible, since it may wait
/// for another rank. Moves updates of these units, and the gathers that follow them, behind it if they come before. `units`: -1 for a unit
/// that this rank does not have.
constexpr Instructions with_sum_of(const Plan& plan, const std::array<int, 2>& units, const Instruction& sum) {
  const Instructions& step = plan.step;
  const auto is_one = [&](int unit) { return unit >= 0 && (unit == units[0] || unit == units[1]); };
  const auto changes_gradient = [&](const Instruction& i) {
    if (i.op == Op::reduce_start || i.op == Op::reduce_wait) return is_one(i.unit);
    return std::any_of(units.begin(), units.end(), [&](int unit) {
      return unit >= 0 && computes_parameter_gradients(i, plan.units[as_size(unit)].first, plan.units[as_size(unit)].last);
    });
  };
  std::size_t end = 0;  // behind the last such instruction
  for (std::size_t at = 0; at < step.size(); ++at)
    if (changes_gradient(step[at])) end = at + 1;
  const auto updates = [&](const Instruction& i) { return i.op == Op::update && is_one(i.unit); };
  const auto first_update = std::find_if(step.begin(), step.end(), updates);
  if (first_update != step.end()) end = std::max(end, as_size(as_int(first_update - step.begin())));
  Instructions list, moved;
  std::array<bool, 2> updated{};
  for (std::size_t at = 0; at < step.size(); ++at) {
    if (at == end) {
      list.push_back(sum);
      list.insert(list.end(), moved.begin(), moved.end());
    }
    const Instruction& i = step[at];
    const auto which = as_size(i.unit == units[1] ? 1 : 0);
    const bool gathers = i.op == Op::gather_start || i.op == Op::gather_wait;
    const bool follows = is_one(i.unit) && (i.op == Op::update || (gathers && updated[which]));
    if (follows) updated[which] = true;
    (follows && at < end ? moved : list).push_back(i);
  }
  if (end == step.size()) {
    list.push_back(sum);
    list.insert(list.end(), moved.begin(), moved.end());
  }
  return list;
}

}  // namespace detail

/// Returns a plan that adds up the gradients of the two layers that share a parameter (nn::TiedOutput): on this rank if it has both, else
/// over a group of the two ranks that have one each, which is appended to the groups. Accepts the plan of any strategy; a plan that has the
/// sum already is not changed. Throws PlanError if one of the layers is in a unit with other parameters.
[[nodiscard]] constexpr Plan with_ties(const Outline& model, Plan plan, RankInWorld at) {
  const bool has_sum =
      std::any_of(plan.step.begin(), plan.step.end(), [](const Instruction& i) { return i.op == Op::add_tied || i.op == Op::sum_tied; });
  if (!model.is_tied(0) || has_sum) return plan;
  const std::array units{unit_of(plan, 0), unit_of(plan, model.tied_output)};
  for (const Unit& unit : plan.units) {
    if (is_tied_among_others(model, unit))
      throw PlanError{text("layers ", unit.first, " to ", unit.last - 1,
                           " of the model (counted from 0) are in one unit of the plan, but one of them shares its parameter with another "
                           "layer; put that layer into a unit of its own, as plan::units_by_size does")};
  }
  if (units[0] >= 0 && units[1] >= 0) {
    plan.step = detail::with_sum_of(plan, units, add_tied(0, model.tied_output));
    return plan;
  }
  // Every rank has the group, as a communicator is split on all ranks. Those that have neither layer are alone in theirs.
  const bool has_one = units[0] >= 0 || units[1] >= 0;
  const int pairs = plan.share.count * plan.tensor.count;
  plan.groups.push_back({has_one ? plan.share.index * plan.tensor.count + plan.tensor.index : pairs + at.rank, units[0] >= 0 ? 0 : 1});
  if (has_one)
    plan.step = detail::with_sum_of(plan, units, on_unit(Op::sum_tied, std::max(units[0], units[1]), as_int(plan.groups.size())));
  return plan;
}

}  // namespace pdp::plan
