#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::report {

/// One value of each step of a training, in memory that does not grow with the number of steps. Consecutive steps share a bucket, which
/// keeps their minimum, maximum and mean. If all buckets are full, each two neighbours become one, so a bucket then holds twice as many.
class Curve {
 public:
  /// The values of the steps from `first` to `last`. NaN and infinity are only counted.
  struct Bucket {
    std::int64_t first = 0, last = 0;
    Index values = 0;      // finite ones
    Index not_finite = 0;  // NaN and infinity
    double low = 0, high = 0;
    double mean = 0;

    [[nodiscard]] Index size() const { return values + not_finite; }
  };

  /// Allocates all memory that add() needs. `most`: number of buckets, rounded up to an even number.
  explicit Curve(std::size_t most = 400);

  /// Adds the value of a step. Step numbers increase. Allocates nothing.
  void add(std::int64_t step, double value);

  /// The buckets in the order of their steps. There are more than half of the most, if there are as many steps.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] bool empty() const { return buckets_.empty(); }
  /// Returns the number of values that are NaN or infinity, and the step of the first one, or -1.
  [[nodiscard]] Index not_finite() const { return not_finite_; }
  [[nodiscard]] std::int64_t first_not_finite() const { return first_not_finite_; }
  /// Returns the value of the last step, which may be NaN, or NaN if there is none.
  [[nodiscard]] double last() const { return last_; }
  /// Return the smallest and the largest finite value, or NaN if there is none.
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;

 private:
  void halve();

  std::size_t most_;
  Index per_bucket_ = 1;
  std::vector<Bucket> buckets_;
  Index not_finite_ = 0;
  std::int64_t first_not_finite_ = -1;
  double last_;
};

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/curve.hpp>
#endif
