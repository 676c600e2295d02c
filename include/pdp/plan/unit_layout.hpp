#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

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
    const Unit& unit = plan.units[as_size(i.unit)];
    const auto number = as_size(unit.buffer);
    if (elements.size() <= number) elements.resize(number + 1);
    elements[number] =
        std::max(elements[number], nn::slice_elements(model, {.first = unit.first, .last = unit.last, .slices = unit.slices}));
  }
  return elements;
}

/// Where the gradient of a unit lies while it is rounded: one place for all units of which the whole lies in the same buffer.
struct RoundedPlace {
  std::size_t number = 0;
  Index elements = 0;  // of the whole, and of a sum of this rank's slice behind it
};
inline RoundedPlace rounded_place(const Plan& plan, const Outline& model, std::size_t unit) {
  const Unit& at = plan.units[unit];
  const bool is_sliced = at.sharding != Sharding::none, in_buffer = at.sharding >= Sharding::gradients;
  const Index slice = nn::slice_elements(model, {.first = at.first, .last = at.last, .slices = at.slices});
  return {in_buffer ? as_size(at.buffer) : plan.units.size() + unit,
          padded<BFloat16>(slice * at.slices) + (is_sliced ? padded<BFloat16>(slice) : 0)};
}

}  // namespace pdp::plan
