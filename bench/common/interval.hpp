// A median and its confidence interval.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "timing.hpp"

namespace bench {

struct Interval {
  double median, low, high;
};

/// Returns the median and its 95 % interval by 4000 resamples (B. Efron, Bootstrap methods, 1979). Equal values give equal results.
inline Interval interval(const std::vector<double>& values) {
  std::mt19937 chance{1};
  std::uniform_int_distribution<std::size_t> any{0, values.size() - 1};
  std::vector<double> medians, resample(values.size());
  for (int i = 0; i < 4000; ++i) {
    for (double& each : resample) each = values[any(chance)];
    medians.push_back(median(resample));
  }
  std::ranges::sort(medians);
  return {median(values), medians[100], medians[3899]};
}

}  // namespace bench
