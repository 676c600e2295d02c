#pragma once

/// Definitions for pdp/optim/schedule.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/optim/schedule.hpp>

namespace pdp::optim {

namespace detail {

/// Returns the value at `way` (0 to 1) of half a cosine between two values.
inline double half_cosine(double from, double to, double way) { return to + (from - to) * (1 + std::cos(std::numbers::pi * way)) / 2; }

/// The largest factor that a schedule may have. Larger ones are mistakes, such as a rate in place of a factor.
inline constexpr double most_factor = 1e6;

PDP_INLINE void check_steps(const char* schedule, std::int64_t steps, std::int64_t least) {
  if (steps < least)
    throw ConfigError{
        text("the learning-rate schedule ", schedule, " has steps = ", steps, "; give it a number of steps from ", least, " on")};
}

PDP_INLINE void check_number(const char* schedule, const char* name, double value, double least, double most) {
  if (!is_finite(value) || value < least || value > most)
    throw ConfigError{
        text("the learning-rate schedule ", schedule, " has ", name, " = ", value, "; give it a number from ", least, " to ", most)};
}

}  // namespace detail

PDP_INLINE void Linear::check() const {
  detail::check_steps("Linear", steps, 0);
  detail::check_number("Linear", "to", as_double(to), 0, detail::most_factor);
}

PDP_INLINE void Cosine::check() const {
  detail::check_steps("Cosine", steps, 0);
  detail::check_number("Cosine", "to", as_double(to), 0, detail::most_factor);
}

PDP_INLINE void StepDecay::check() const {
  detail::check_steps("StepDecay", steps, 1);
  detail::check_number("StepDecay", "by", as_double(by), 0, detail::most_factor);
}

PDP_INLINE void Exponential::check() const {
  detail::check_steps("Exponential", steps, 1);
  detail::check_number("Exponential", "by", as_double(by), 0, detail::most_factor);
}

PDP_INLINE void CosineRestarts::check() const {
  detail::check_steps("CosineRestarts", steps, 1);
  detail::check_number("CosineRestarts", "growth", as_double(growth), 1, detail::most_factor);
  detail::check_number("CosineRestarts", "to", as_double(to), 0, detail::most_factor);
}

PDP_INLINE void OneCycle::check() const {
  detail::check_steps("OneCycle", steps, 0);
  detail::check_number("OneCycle", "rise", as_double(rise), 0, 1);
  detail::check_number("OneCycle", "from", as_double(from), 0, detail::most_factor);
  detail::check_number("OneCycle", "to", as_double(to), 0, detail::most_factor);
}

PDP_INLINE float Cosine::factor(std::int64_t step) const {
  if (step >= steps) return to;
  return static_cast<float>(detail::half_cosine(1, as_double(to), as_double(step) / as_double(steps)));
}

PDP_INLINE float StepDecay::factor(std::int64_t step) const {
  const std::int64_t times = step / std::max<std::int64_t>(steps, 1);
  return static_cast<float>(std::pow(as_double(by), as_double(times)));
}

PDP_INLINE float Exponential::factor(std::int64_t step) const {
  return static_cast<float>(std::pow(as_double(by), as_double(step) / as_double(std::max<std::int64_t>(steps, 1))));
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
  const double last = as_double(steps) - 1, peak = as_double(rise) * as_double(steps) - 1;
  const auto at = as_double(step), begin = as_double(from), end = as_double(to);
  if (at >= last) return to;
  if (at <= peak) return static_cast<float>(peak > 0 ? detail::half_cosine(begin, 1, at / peak) : 1.0);
  return static_cast<float>(detail::half_cosine(1, end, (at - peak) / (last - peak)));
}

}  // namespace pdp::optim
