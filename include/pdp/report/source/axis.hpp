#pragma once

/// Definitions for pdp/report/axis.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/axis.hpp>

namespace pdp::report {

namespace detail {

/// Returns the label of a tick. `step`: the distance between ticks, which determines the number of decimals; 0: unknown.
PDP_INLINE std::string tick_label(double value, double step) {
  if (value == 0) return "0";
  struct Size {
    double factor;
    const char* letter;
  };
  constexpr std::array sizes{Size{1e12, "T"}, Size{1e9, "G"}, Size{1e6, "M"}, Size{1e3, "k"}};
  const double large = std::abs(value);
  if (large >= 1e15 || large < 1e-4) return fmt::format("{:.3g}", value);
  Size size{1, ""};
  for (const Size& each : sizes)
    if (large >= each.factor && large >= 1e4 && size.factor == 1) size = each;
  if (step <= 0) return fmt::format("{:.4g}{}", value / size.factor, size.letter);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / size.factor) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value / size.factor, decimals, size.letter);
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`.
PDP_INLINE double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

PDP_INLINE void add_linear_ticks(Axis& axis, const AxisOptions& options) {
  double step = round_step((axis.high - axis.low) / options.most_ticks);
  if (options.is_whole) step = std::max(step, 1.0);
  const double first = std::ceil(axis.low / step - 1e-9);
  for (int number = 0; number <= options.most_ticks; ++number) {
    const double value = (first + number) * step;
    if (value <= axis.high + step * 1e-9) axis.ticks.push_back({value, tick_label(value, step)});
  }
}

PDP_INLINE void add_logarithmic_ticks(Axis& axis, const AxisOptions& options) {
  const int first = static_cast<int>(std::floor(std::log10(axis.low))), last = static_cast<int>(std::ceil(std::log10(axis.high)));
  const int stride = (last - first) / options.most_ticks + 1;
  for (int power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 3.0}) {
      const double value = factor * std::pow(10, power);
      if (factor > 1 && last - first > 3) continue;  // powers of ten are enough
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9)) axis.ticks.push_back({value, tick_label(value, 0)});
    }
  }
}

}  // namespace detail

PDP_INLINE double Axis::place(double value) const {
  if (!is_logarithmic) return (value - low) / (high - low);
  return (std::log(std::max(value, low)) - std::log(low)) / (std::log(high) - std::log(low));
}

PDP_INLINE Axis axis_of(double low, double high, const AxisOptions& options) {
  constexpr double most = 1e300;  // so that differences of values are finite
  low = is_finite(low) ? std::clamp(low, -most, most) : 0;
  high = is_finite(high) ? std::clamp(high, low, std::max(low, most)) : low;
  Axis axis;
  axis.is_logarithmic = options.may_be_logarithmic && low > 0 && high / 50 >= low;
  if (axis.is_logarithmic) {
    axis.low = std::max(low / 1.2, 1e-307);
    axis.high = high * 1.2;
    detail::add_logarithmic_ticks(axis, options);
    return axis;
  }
  if (options.from_zero) low = std::min(low, 0.0);
  double margin = options.has_margin ? 0.05 * (high - low) : 0;
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) margin = low == 0 ? 1 : 0.1 * std::abs(low);
  if (options.is_whole) margin = high > low ? margin : 0.5;
  axis.low = options.from_zero && low >= 0 ? 0 : low - margin;
  axis.high = high + margin;
  if (options.from_zero && axis.high <= axis.low) axis.high = axis.low + 1;
  detail::add_linear_ticks(axis, options);
  return axis;
}

}  // namespace pdp::report
