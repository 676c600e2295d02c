#pragma once

/// Definitions for pdp/nn/stage_parameters.hpp; see pdp/core/separate_compilation.hpp.

#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::nn {

PDP_INLINE void detail::append(std::vector<LayerParameter>& all, const Parameter& parameter, int layer, bool is_tied) {
  all.push_back({is_tied && !all.empty() ? tied_to(all.front().parameter, parameter) : parameter, layer});
}

}  // namespace pdp::nn
