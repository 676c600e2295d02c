#pragma once

#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::report {

/// An axis of a chart: its range and its ticks.
struct Axis {
  struct Tick {
    double value = 0;
    std::string label;
  };

  double low = 0, high = 1;
  bool is_logarithmic = false;
  std::vector<Tick> ticks;

  /// Returns the place of a value: 0 at the low end, 1 at the high end.
  [[nodiscard]] double place(double value) const;
};

/// The options of an axis.
struct AxisOptions {
  int most_ticks = 5;
  bool may_be_logarithmic = false;  // if all values are above 0 and the largest is at least 50 times the smallest
  bool from_zero = false;           // begins at 0
  bool is_whole = false;            // ticks are integers
  bool has_margin = true;           // leaves some room beyond the values
};

/// Returns an axis for the values from `low` to `high`, at most six characters for each label in common ranges. Ticks lie at 1, 2 or 5
/// times a power of ten.
[[nodiscard]] Axis axis_of(double low, double high, const AxisOptions& options);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/axis.hpp>
#endif
