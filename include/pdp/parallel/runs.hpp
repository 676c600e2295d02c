#pragma once

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

}  // namespace pdp::parallel
