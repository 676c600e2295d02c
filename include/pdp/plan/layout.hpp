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

/// The units of a plan, as a Stage takes them.
std::vector<nn::Run> runs(const Plan& plan);

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

Layout layout(const Plan& plan, const Outline& model);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/layout.hpp>
#endif
