#pragma once

/// Definitions for pdp/optim/schedule.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/optim/schedule.hpp>

namespace pdp::optim {

namespace detail {

/// Returns the value at `way` (0 to 1) of half a cosine between two values.
inline double half_cosine(double from, double to, double way) { return to + (from - to) * (1 + std::cos(std::numbers::pi * way)) / 2; }

}  // namespace detail

PDP_INLINE float Cosine::factor(std::int64_t step) const {
  if (step >= steps) return to;
  return static_cast<float>(detail::half_cosine(1, static_cast<double>(to), static_cast<double>(step) / static_cast<double>(steps)));
}

PDP_INLINE float StepDecay::factor(std::int64_t step) const {
  const std::int64_t times = step / std::max<std::int64_t>(steps, 1);
  return static_cast<float>(std::pow(static_cast<double>(by), static_cast<double>(times)));
}

PDP_INLINE float Exponential::factor(std::int64_t step) const {
  return static_cast<float>(
      std::pow(static_cast<double>(by), static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps, 1))));
}

PDP_INLINE float CosineRestarts::factor(std::int64_t step) const {
  std::int64_t length = std::max<std::int64_t>(steps, 1);
  if (growth <= 1) step %= length;
  while (step >= length) {
    step -= length;
    length *= growth;
  }
  return Cosine{length, to}.factor(step);
}

PDP_INLINE float OneCycle::factor(std::int64_t step) const {
  const double last = static_cast<double>(steps) - 1, peak = static_cast<double>(rise) * static_cast<double>(steps) - 1;
  const auto at = static_cast<double>(step), begin = static_cast<double>(from), end = static_cast<double>(to);
  if (at >= last) return to;
  if (at <= peak) return static_cast<float>(peak > 0 ? detail::half_cosine(begin, 1, at / peak) : 1.0);
  return static_cast<float>(detail::half_cosine(1, end, (at - peak) / (last - peak)));
}

}  // namespace pdp::optim
