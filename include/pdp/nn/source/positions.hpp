#pragma once

/// Definitions for pdp/nn/positions.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/positions.hpp>

namespace pdp::nn {

PDP_INLINE double detail::sinusoidal_position(random::Key, Index element, Index, Index width) {
  const Index position = element / width, i = element % width / 2;
  const double angle = as_double(position) * std::pow(10000.0, -as_double(2 * i) / as_double(width));
  return element % width % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

}  // namespace pdp::nn
