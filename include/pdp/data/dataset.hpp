#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/copyable.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// The share of every global batch that one reader takes: part `index` of `count`, counted from 0.
struct Shard {
  int index = 0;
  int count = 1;
  friend constexpr bool operator==(const Shard&, const Shard&) = default;
};

/// Element type of a sample: float, or std::int32_t for tokens, which only models take whose first layer is nn::Embedding or the like.
template <class T>
concept SampleElement = std::same_as<T, float> || std::same_as<T, std::int32_t>;

/// Element type of a target: std::int32_t for a class number, float for the values of a vector.
template <class T>
concept TargetElement = std::same_as<T, std::int32_t> || std::same_as<T, float>;

namespace detail {
template <class D>
struct SampleElementOf {
  using type = float;
};
template <class D>
requires SampleElement<typename D::Sample>
struct SampleElementOf<D> {
  using type = typename D::Sample;
};
}  // namespace detail

/// The element type of a dataset's samples: D::Sample, or float if it has none.
template <class D>
using SampleOf = typename detail::SampleElementOf<D>::type;

/// A set of samples, numbered 0 .. size() - 1. A sample has `sample_shape()` elements, floats unless the dataset declares `using Sample =
/// std::int32_t`, and a target of `target_shape()` elements (Shape{1} for a class number).
///
/// gather copies the samples listed in `which` and their targets, in that order. Values that need normalisation are normalised here. `x` is
/// [which.size(), sample_shape()] and `y` is [which.size(), target_shape()], both row-major. It throws ShapeError if a span has the wrong
/// size or a number in `which` is out of range. It is const and may be called on another thread. The loader and the user each keep a copy
/// of the dataset, so copies must be cheap.
///
/// The samples must be the same in each call. To change them at random in each epoch, use Augmented, or model TakesEpoch.
///
/// All ranks of a training give a dataset with equal values, or each rank wraps a part of its own in PerRank.
template <class D>
concept Dataset = Copyable<D> && TargetElement<typename D::Target> &&
    requires(const D& data, std::span<const Index> which, std::span<SampleOf<D>> x, std::span<typename D::Target> y) {
  { data.size() } -> std::same_as<Index>;
  { data.sample_shape() } -> std::same_as<Shape>;
  { data.target_shape() } -> std::same_as<Shape>;
  { data.gather(which, x, y) } -> std::same_as<void>;
};

/// A dataset whose gather also takes an epoch, as fourth argument. A training gives the epoch, and the samples may differ between epochs.
/// Evaluations, statistics and the comparison of ranks call gather without it, and get the samples unchanged. One function can serve both
/// if its fourth argument is std::optional<TrainingEpoch> and has a default.
template <class D>
concept TakesEpoch = Dataset<D> && requires(const D& data, std::span<const Index> which, std::span<SampleOf<D>> x,
                                            std::span<typename D::Target> y, const TrainingEpoch& epoch) {
  { data.gather(which, x, y, epoch) } -> std::same_as<void>;
};

namespace detail {

/// Whether gather of a dataset takes an epoch in this form as its fourth argument.
template <class D, class Epoch>
concept GathersWith = requires(const D& data, std::span<const Index> which, std::span<SampleOf<D>> x, std::span<typename D::Target> y,
                               Epoch epoch) {
  data.gather(which, x, y, epoch);
};

}  // namespace detail

/// Copies samples for an epoch of a training: gives the epoch to a dataset that takes it. Wrappers of datasets call this in gather. Does
/// not compile if gather takes the epoch in another form than TakesEpoch requires, since it would not get the epoch.
template <Dataset D>
void gather_in_epoch(const D& data, std::span<const Index> which, std::span<SampleOf<D>> x, std::span<typename D::Target> y,
                     const TrainingEpoch& epoch) {
  if constexpr (TakesEpoch<D>) {
    data.gather(which, x, y, epoch);
  } else {
    static_assert(
        !detail::GathersWith<D, const TrainingEpoch&> && !detail::GathersWith<D, TrainingEpoch&> && !detail::GathersWith<D, TrainingEpoch*>,
        "pdp: gather of this dataset: argument 4, the epoch of the training, must be `const data::TrainingEpoch& epoch`, and "
        "gather must return nothing");
    data.gather(which, x, y);
  }
}

namespace detail {
/// The sizes of the spans passed to gather, and the numbers of elements in one sample and one target.
struct GatherSizes {
  std::size_t x = 0, y = 0;
  Index x_of_sample = 0, y_of_sample = 0;
};
void check_gather(Index samples, std::span<const Index> which, const GatherSizes& sizes);
}  // namespace detail

/// Throws ShapeError if a span passed to gather has the wrong size or a sample number is out of range. Datasets call this in gather.
template <class D>
void check_gather(const D& data, std::span<const Index> which, std::span<const SampleOf<D>> x, std::span<const typename D::Target> y) {
  detail::check_gather(data.size(), which, {x.size(), y.size(), data.sample_shape().elements(), data.target_shape().elements()});
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/dataset.hpp>
#endif
