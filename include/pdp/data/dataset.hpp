#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::data {

/// The share of every global batch that one reader takes: part `index` of `count`, counted from 0.
struct Shard {
  int index = 0;
  int count = 1;
  friend constexpr bool operator==(const Shard&, const Shard&) = default;
};

/// Element type of a target: std::int32_t for a class number, float for the values of a vector.
template <class T>
concept TargetElement = std::same_as<T, std::int32_t> || std::same_as<T, float>;

/// A set of samples, numbered 0 .. size() - 1. A sample has `sample_shape()` floats and a target of `target_shape()` elements (Shape{1} for
/// a class number).
///
/// gather copies the samples listed in `which` and their targets, in that order. Values that need normalisation are normalised here. `x` is
/// [which.size(), sample_shape()] and `y` is [which.size(), target_shape()], both row-major. It throws ShapeError if a span has the wrong
/// size or a number in `which` is out of range. It is const and may be called on another thread. The loader and the user each keep a copy
/// of the dataset, so copies must be cheap.
///
/// All ranks of a training give a dataset with equal values, or each rank wraps a part of its own in PerRank.
template <class D>
concept Dataset = std::copyable<D> && TargetElement<typename D::Target> &&
    requires(const D& data, std::span<const Index> which, std::span<float> x, std::span<typename D::Target> y) {
  { data.size() } -> std::same_as<Index>;
  { data.sample_shape() } -> std::same_as<Shape>;
  { data.target_shape() } -> std::same_as<Shape>;
  { data.gather(which, x, y) } -> std::same_as<void>;
};

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
void check_gather(const D& data, std::span<const Index> which, std::span<const float> x, std::span<const typename D::Target> y) {
  detail::check_gather(data.size(), which, {x.size(), y.size(), data.sample_shape().elements(), data.target_shape().elements()});
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/dataset.hpp>
#endif
