#pragma once

/// Definitions for pdp/plan/common_memory.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/common_memory.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

PDP_INLINE Plan in_common_memory(Plan plan, RankInWorld at) {
  constexpr int world = 0;
  const auto may_be_shared = [&plan, at](int number) {
    if (at.size == 1) return false;
    const Unit& unit = plan.units[as_size(number)];
    const auto reduced = std::find_if(plan.step.begin(), plan.step.end(),
                                      [number](const Instruction& other) { return other.op == Op::reduce_start && other.unit == number; });
    return unit.group == world && unit.sharding == Sharding::none && reduced != plan.step.end() &&
           std::none_of(reduced, plan.step.end(),
                        [&unit](const Instruction& later) { return reads_parameters(later, unit.first, unit.last); });
  };
  std::vector<bool> shared;
  for (int unit = 0; unit < as_int(plan.units.size()); ++unit) shared.push_back(may_be_shared(unit));
  for (const Instruction& i : plan.step) {
    if (i.op != Op::add_tied) continue;  // it adds up the same slices of both units
    const int one = unit_of(plan, i.first), other = unit_of(plan, i.last);
    if (one >= 0 && other >= 0) shared[as_size(one)] = shared[as_size(other)] = shared[as_size(one)] && shared[as_size(other)];
  }
  const auto is_shared = [&](const Instruction& i) { return i.unit >= 0 && i.unit < as_int(shared.size()) && shared[as_size(i.unit)]; };
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
