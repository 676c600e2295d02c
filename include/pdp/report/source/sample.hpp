#pragma once

/// Definitions for pdp/report/sample.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/sample.hpp>

namespace pdp::report {

PDP_INLINE Sample::Sample(std::size_t most) : most_{std::max<std::size_t>(1, most)} { kept_.reserve(most_); }

PDP_INLINE void Sample::add(double value) {
  if (!is_finite(value)) return;
  low_ = count_ == 0 ? value : std::min(low_, value);
  high_ = count_ == 0 ? value : std::max(high_, value);
  ++count_;
  mean_ += (value - mean_) / as_double(count_);
  if (kept_.size() < most_) return kept_.push_back(value);
  const auto count = static_cast<std::uint64_t>(count_);
  const std::uint64_t place = random::mix(count) % count;
  if (place < most_) kept_[as_size(place)] = value;
}

PDP_INLINE void Sample::clear() {
  kept_.clear();
  count_ = 0;
  low_ = high_ = mean_ = 0;
}

PDP_INLINE std::vector<double> Sample::sorted() const {
  std::vector<double> values = kept_;
  std::ranges::sort(values);
  return values;
}

PDP_INLINE double quantile(std::span<const double> sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = std::clamp(part, 0.0, 1.0) * as_double(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(place))];
}

}  // namespace pdp::report
