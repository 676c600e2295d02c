#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::data {

/// The mean and standard deviation of each column of a dataset. A column is one of the values of a sample. The variance is the mean of the
/// squared deviations, not divided by samples - 1.
struct ColumnStatistics {
  Index samples = 0;
  std::vector<double> mean{}, deviation{};  // of each column
  friend bool operator==(const ColumnStatistics&, const ColumnStatistics&) = default;
};

/// The moments of rows that are added one after the other: per column the mean and the sum of squared deviations. B. P. Welford, "Note on a
/// method for calculating corrected sums of squares and products", 1962.
class ColumnMoments {
 public:
  explicit ColumnMoments(Index columns) : mean_(as_size(columns)), squares_(as_size(columns)) {}
  /// Takes moments that were computed elsewhere.
  ColumnMoments(Index samples, std::vector<double> mean, std::vector<double> squares);

  [[nodiscard]] Index samples() const { return samples_; }
  [[nodiscard]] const std::vector<double>& mean() const { return mean_; }
  [[nodiscard]] const std::vector<double>& squares() const { return squares_; }

  /// Adds rows, [rows, columns]. They must be finite.
  void add(std::span<const float> rows);
  /// Adds the rows of other moments. T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
  /// sample variances", 1979.
  void merge(const ColumnMoments& other);
  /// Returns the statistics of all rows. There must be at least one.
  [[nodiscard]] ColumnStatistics statistics() const;

 private:
  Index samples_ = 0;
  std::vector<double> mean_, squares_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/column_statistics.hpp>
#endif
