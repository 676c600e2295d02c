#pragma once

/// Definitions for pdp/data/column_statistics.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/column_statistics.hpp>

namespace pdp::data {

PDP_INLINE ColumnMoments::ColumnMoments(Index samples, std::vector<double> mean, std::vector<double> squares)
    : samples_{samples}, mean_{std::move(mean)}, squares_{std::move(squares)} {}

PDP_INLINE void ColumnMoments::add(std::span<const float> rows) {
  const std::size_t columns = mean_.size();
  for (std::size_t row = 0; row + columns <= rows.size(); row += columns) {
    const double share = 1 / as_double(++samples_);
    for (std::size_t column = 0; column < columns; ++column) {
      const auto value = as_double(rows[row + column]);
      const double from_old = value - mean_[column];
      mean_[column] += from_old * share;
      squares_[column] += from_old * (value - mean_[column]);
    }
  }
}

PDP_INLINE void ColumnMoments::merge(const ColumnMoments& other) {
  if (other.samples_ == 0) return;
  const auto own = as_double(samples_), others = as_double(other.samples_);
  const double share = others / (own + others);
  for (std::size_t column = 0; column < mean_.size(); ++column) {
    const double apart = other.mean_[column] - mean_[column];
    mean_[column] += apart * share;
    squares_[column] += other.squares_[column] + apart * apart * own * share;
  }
  samples_ += other.samples_;
}

PDP_INLINE ColumnStatistics ColumnMoments::statistics() const {
  ColumnStatistics statistics{samples_, mean_, squares_};
  for (double& deviation : statistics.deviation) deviation = std::sqrt(deviation / as_double(samples_));
  return statistics;
}

}  // namespace pdp::data
