#pragma once

/// Definitions for pdp/nn/initializer.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/initializer.hpp>

namespace pdp::nn {

PDP_INLINE double Initializer::scale(Index fan_in, Index fan_out) const {
  if (fan == Fan::none) return std::sqrt(numerator);
  const Index count = fan == Fan::in ? fan_in : fan == Fan::out ? fan_out : fan_in + fan_out;
  return count > 0 ? std::sqrt(numerator / static_cast<double>(count)) : 0;
}

}  // namespace pdp::nn
