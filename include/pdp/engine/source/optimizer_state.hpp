#pragma once

/// Definitions for pdp/engine/optimizer_state.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/optimizer_state.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/grouped.hpp>

namespace pdp::engine {

PDP_INLINE std::vector<std::vector<UpdateRun>> update_runs(std::span<const optim::ParameterGroup> groups,
                                                           const std::vector<nn::SlicePart>& parts, std::span<const Index> sizes) {
  std::vector<std::vector<UpdateRun>> runs(sizes.size());
  for (const nn::SlicePart& part : parts) {
    const nn::Parameter& parameter = *part.parameter;
    runs[as_size(part.unit)].push_back({.settings = settings_of(groups, parameter), .is_buffer = parameter.is_buffer, .begin = part.at});
  }
  for (std::size_t u = 0; u < runs.size(); ++u) {
    std::vector<UpdateRun>& own = runs[u];
    std::ranges::sort(own, {}, &UpdateRun::begin);
    if (own.empty()) own.emplace_back();
    own.front().begin = 0;
    const auto [repeated, end] = std::ranges::unique(own, [](const UpdateRun& before, const UpdateRun& run) {
      return before.settings == run.settings && before.is_buffer == run.is_buffer;
    });
    own.erase(repeated, end);
    for (std::size_t i = 0; i < own.size(); ++i) own[i].elements = (i + 1 < own.size() ? own[i + 1].begin : sizes[u]) - own[i].begin;
  }
  return runs;
}

}  // namespace pdp::engine
