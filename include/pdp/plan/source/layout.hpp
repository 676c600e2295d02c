#pragma once

/// Definitions for pdp/plan/layout.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

PDP_INLINE std::vector<nn::Run> runs(const Plan& plan, const Outline& model) {
  std::vector<nn::Run> runs;
  for (const Unit& unit : plan.units)
    runs.push_back({unit.first, unit.last, unit.slices, unit.slice, unit.sharding < Sharding::parameters,
                    unit.sharding < Sharding::gradients, unit.buffer, !is_frozen(model, unit)});
  for (const Instruction& i : plan.step)
    if (i.op == Op::update || i.op == Op::reduce_start) runs[as_size(i.unit)].has_gradients = true;
  return runs;
}

PDP_INLINE Layout layout(const Plan& plan, const Outline& model) {
  Layout made{nn::layout(model, runs(plan, model))};
  for (const Instruction& i : plan.step)
    if (i.op == Op::reduce_start && i.accumulate)
      nn::reserve_at_least(made.scratch, as_size(plan.units[as_size(i.unit)].buffer), made.units[as_size(i.unit)].slice);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    const Index slice = unit.sharding == Sharding::none ? 0 : padded<BFloat16>(made.units[u].slice);
    made.rounded_place.push_back(unit.sharding >= Sharding::gradients ? as_size(unit.buffer) : plan.units.size() + u);
    const bool has_gradients = made.units[u].run.has_gradients;
    nn::reserve_at_least(made.rounded, made.rounded_place[u], has_gradients ? padded<BFloat16>(made.units[u].whole()) + slice : 0);
  }
  return made;
}

}  // namespace pdp::plan
