#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// The units of a plan, as a Stage takes them.
constexpr std::vector<nn::Run> runs(const Plan& plan) {
  std::vector<nn::Run> runs;
  for (const Unit& unit : plan.units)
    runs.push_back({unit.first, unit.last, unit.slices, unit.slice, unit.sharding < Sharding::parameters,
                    unit.sharding < Sharding::gradients, unit.buffer});
  return runs;
}

/// What a rank holds of the model's parameters and of what becomes of them, in elements: the engine makes this memory, and describe() adds
/// it up.
struct Layout : nn::Layout {
  /// [buffer]: sums of slices, before they are added to those of earlier micro-batches.
  std::vector<Index> scratch{};
  /// [place]: a gradient while it is rounded, and behind it the sum of this rank's slice. Units of which the whole lies in one buffer have
  /// one place.
  std::vector<Index> rounded{};
  std::vector<std::size_t> rounded_place{};  // [unit]

  [[nodiscard]] static constexpr Index sum(const std::vector<Index>& elements) {
    return std::accumulate(elements.begin(), elements.end(), Index{0});
  }
};

constexpr Layout layout(const Plan& plan, const Outline& model) {
  Layout made{nn::layout(model, runs(plan))};
  for (const Instruction& i : plan.step)
    if (i.op == Op::reduce_start && i.accumulate)
      nn::reserve_at_least(made.scratch, as_size(plan.units[as_size(i.unit)].buffer), made.units[as_size(i.unit)].slice);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    const Index slice = unit.sharding == Sharding::none ? 0 : padded<BFloat16>(made.units[u].slice);
    made.rounded_place.push_back(unit.sharding >= Sharding::gradients ? as_size(unit.buffer) : plan.units.size() + u);
    nn::reserve_at_least(made.rounded, made.rounded_place[u], padded<BFloat16>(made.units[u].whole()) + slice);
  }
  return made;
}

}  // namespace pdp::plan
