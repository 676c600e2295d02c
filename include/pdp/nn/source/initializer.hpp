#pragma once

/// Definitions for pdp/nn/initializer.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/initializer.hpp>

namespace pdp::nn {

PDP_INLINE double Initializer::bound(Index fan_in, Index fan_out) const {
  const auto count = static_cast<double>(fan == Fan::in ? fan_in : fan_in + fan_out);
  return count > 0 ? std::sqrt(numerator / count) : 0;
}

}  // namespace pdp::nn
