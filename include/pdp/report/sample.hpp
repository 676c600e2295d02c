#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::report {

/// A sample of a stream of numbers, such as the times of steps, in memory that does not grow with their count. Each number is in the sample
/// with the same probability (reservoir sampling). The count, the mean, the minimum and the maximum are those of all numbers.
class Sample {
 public:
  /// Allocates all memory that add() needs. `most`: numbers to keep.
  explicit Sample(std::size_t most = 8192);

  /// Adds a number. NaN and infinity are left out. Allocates nothing.
  void add(double value);
  void clear();

  [[nodiscard]] Index count() const { return count_; }
  /// These are 0 if there is no number.
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  [[nodiscard]] double mean() const { return mean_; }
  /// Returns the numbers that were kept, in increasing order.
  [[nodiscard]] std::vector<double> sorted() const;

 private:
  std::size_t most_;
  std::vector<double> kept_;
  Index count_ = 0;
  double low_ = 0, high_ = 0, mean_ = 0;
};

/// Returns the number below which the fraction `part` of the sorted values lies. Returns 0 if there are none.
[[nodiscard]] double quantile(std::span<const double> sorted, double part);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/sample.hpp>
#endif
