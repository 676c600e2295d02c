#pragma once

/// Definitions for pdp/plan/common_memory.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/common_memory.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

PDP_INLINE Plan in_common_memory(Plan plan, RankInWorld at) {
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
