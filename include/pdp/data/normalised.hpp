#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/column_statistics.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// Normalises samples: subtracts the mean of each column and divides by its standard deviation. A column whose values are all equal is not
/// divided, so it becomes 0. Copies share the statistics.
class Normalisation {
 public:
  /// Throws ConfigError if the statistics have no columns, not as many deviations as means, or a number that is not finite or a negative
  /// deviation.
  explicit Normalisation(const ColumnStatistics& statistics);

  [[nodiscard]] Index columns() const { return as_index(scales_->size()); }
  /// Normalises rows in place, [rows, columns()], as a dataset does. Use it for samples of which a trained model predicts the target.
  /// Throws ShapeError if the number of values is not a multiple of columns().
  void apply(std::span<float> rows) const;

 private:
  struct Scale {
    double mean, factor;
  };
  std::shared_ptr<const std::vector<Scale>> scales_;
};

/// A Dataset with the normalised samples of another dataset, and its targets unchanged.
template <Dataset D>
class Normalised {
  static_assert(std::same_as<SampleOf<D>, float>, "pdp: the samples of this dataset are tokens, which cannot be normalised");

 public:
  using Target = typename D::Target;

  /// Throws ShapeError if the statistics are for samples of another size.
  Normalised(D set, Normalisation normalisation) : set_{std::move(set)}, normalisation_{std::move(normalisation)} {
    if (normalisation_.columns() != set_.sample_shape().elements())
      throw ShapeError{text("expected statistics of the ", set_.sample_shape().elements(), " values of a sample, found those of ",
                            normalisation_.columns(), ". Compute them from a dataset with the same samples.")};
  }

  [[nodiscard]] Index size() const { return set_.size(); }
  [[nodiscard]] Shape sample_shape() const { return set_.sample_shape(); }
  [[nodiscard]] Shape target_shape() const { return set_.target_shape(); }

  /// Copies and normalises samples as described by the concept Dataset.
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const {
    set_.gather(which, x, y);
    normalisation_.apply(x);
  }
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y, const TrainingEpoch& epoch) const {
    gather_in_epoch(set_, which, x, y, epoch);
    normalisation_.apply(x);
  }

 private:
  D set_;
  Normalisation normalisation_;
};

/// Returns a dataset whose samples are normalised when they are gathered. Throws as Normalised and Normalisation do.
template <Dataset D>
[[nodiscard]] Normalised<D> normalised(D set, const ColumnStatistics& statistics) {
  return {std::move(set), Normalisation{statistics}};
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/normalised.hpp>
#endif
