#pragma once

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// A plan for a world whose ranks see each other's memory. Of a unit that all of them would update equally each one updates a slice, and
/// keeps the optimizer's state of that only: it adds up the others' gradients where they lie, and leaves the new parameters with them, so
/// that neither costs a message. A unit stays what it is where it is not reduced over the world, and where a rank still computes with its
/// parameters when it has started to reduce: others may change them from then on.
constexpr Plan in_common_memory(Plan plan, RankInWorld at) {
  constexpr int world = 0;
  const auto is_shared = [&plan, at](const Instruction& i) {
    if (i.unit < 0 || i.unit >= as_int(plan.units.size()) || at.size == 1) return false;
    const Unit& unit = plan.units[as_size(i.unit)];
    const auto reduced = std::find_if(plan.step.begin(), plan.step.end(),
                                      [&i](const Instruction& other) { return other.op == Op::reduce_start && other.unit == i.unit; });
    return unit.group == world && unit.sharding == Sharding::none && reduced != plan.step.end() &&
           std::none_of(reduced, plan.step.end(),
                        [&unit](const Instruction& later) { return reads_parameters(later, unit.first, unit.last); });
  };
  Instructions list, waits;
  for (const Instruction& i : plan.step) {
    list.push_back(i);
    if (i.op != Op::update || !is_shared(i)) continue;
    list.push_back(on_unit(Op::gather_start, i.unit, world));
    waits.push_back(on_unit(Op::gather_wait, i.unit, world));
  }
  for (const Instruction& wait : waits) {
    Unit& unit = plan.units[as_size(wait.unit)];
    unit.sharding = Sharding::state;
    unit.slices = at.size;
    unit.slice = at.rank;
  }
  list.insert(list.end(), waits.begin(), waits.end());
  plan.step = std::move(list);
  return plan;
}

}  // namespace pdp::plan
