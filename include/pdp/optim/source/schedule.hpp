#pragma once

/// Definitions for pdp/optim/schedule.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>
#include <cstdint>
#include <numbers>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/optim/schedule.hpp>

namespace pdp::optim {

PDP_INLINE float Cosine::factor(std::int64_t step) const {
  if (step >= steps) return to;
  const double wave = std::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps));
  const auto last = static_cast<double>(to);
  return static_cast<float>(last + (1 - last) * (1 + wave) / 2);
}

}  // namespace pdp::optim
