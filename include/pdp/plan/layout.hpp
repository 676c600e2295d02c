#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// Returns the units of a plan in the form that nn::Stage takes. Frozen units that the plan neither reduces nor updates have no memory for
/// gradients.
std::vector<nn::Run> runs(const Plan& plan, const Outline& model);

/// Sizes in elements of the memory that a rank needs for parameters, for gradients and for their reduction. The engine allocates this
/// memory; describe() adds it up.
struct Layout : nn::Layout {
  /// [buffer]: the sum of a slice over the ranks, before it is added to the sum of earlier micro-batches.
  std::vector<Index> scratch{};
  /// [place]: a unit's gradient rounded to 16 bits, followed by the rounded sum of this rank's slice. Used only if messages carry 16-bit
  /// gradients. Units that use the same gradient buffer share one place.
  std::vector<Index> rounded{};
  std::vector<std::size_t> rounded_place{};  // [unit]: its place in `rounded`

  [[nodiscard]] static constexpr Index sum(const std::vector<Index>& elements) {
    return std::accumulate(elements.begin(), elements.end(), Index{0});
  }
};

/// Returns the sizes for a plan of a model.
Layout layout(const Plan& plan, const Outline& model);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/layout.hpp>
#endif
