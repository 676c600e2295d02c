#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pdp/nn/stage.hpp>
#include <pdp/parallel/strategy.hpp>

namespace pdp::parallel {

/// The units of a plan, as a Stage takes them.
inline std::vector<nn::Run> runs(const Plan& plan) {
  std::vector<nn::Run> runs;
  for (const Unit& unit : plan.units)
    runs.push_back({unit.first, unit.last, unit.slices, unit.slice, unit.sharding < Sharding::parameters,
                    unit.sharding < Sharding::gradients, unit.buffer});
  return runs;
}

/// Elements of each buffer through which sums of slices are added to those of earlier micro-batches.
inline std::vector<Index> scratch_elements(const Plan& plan, const Outline& model) {
  std::vector<Index> elements;
  for (const Instruction& i : plan.step) {
    if (i.op != Op::reduce_start || !i.accumulate) continue;
    const Unit& unit = plan.units[static_cast<std::size_t>(i.unit)];
    const auto number = static_cast<std::size_t>(unit.buffer);
    if (elements.size() <= number) elements.resize(number + 1);
    elements[number] =
        std::max(elements[number], nn::slice_elements(model, {.first = unit.first, .last = unit.last, .slices = unit.slices}));
  }
  return elements;
}

}  // namespace pdp::parallel
