#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::data {

/// Which part of every global batch one reader takes: part `index` of `count` parts.
struct Shard {
  int index = 0;
  int count = 1;
  friend constexpr bool operator==(const Shard&, const Shard&) = default;
};

/// What a sample is labelled with: a class number, or the floats of a vector.
template <class T>
concept TargetElement = std::same_as<T, std::int32_t> || std::same_as<T, float>;

/// Samples 0 .. size() - 1, each of `sample_shape()` floats with a target of `target_shape()` elements (Shape{1} for a class number).
///
/// gather copies the samples of the numbers in `which`, in that order, ready for a step (normalised): `x` is [which.size(), sample_shape()]
/// and `y` is [which.size(), target_shape()], row-major. It throws ShapeError where the spans do not fit or a number is out of range. It is
/// const and may run on another thread than its owner's. Copies of a Dataset are cheap: the loader and the user each keep their own.
template <class D>
concept Dataset = std::copyable<D> && TargetElement<typename D::Target> &&
    requires(const D& data, std::span<const Index> which, std::span<float> x, std::span<typename D::Target> y) {
  { data.size() } -> std::same_as<Index>;
  { data.sample_shape() } -> std::same_as<Shape>;
  { data.target_shape() } -> std::same_as<Shape>;
  { data.gather(which, x, y) } -> std::same_as<void>;
};

namespace detail {
/// The numbers of elements that a gather was given room for, and those of one sample.
struct GatherSizes {
  std::size_t x = 0, y = 0;
  Index x_of_sample = 0, y_of_sample = 0;
};
void check_gather(Index samples, std::span<const Index> which, const GatherSizes& sizes);
}  // namespace detail

/// Throws ShapeError unless the spans of a gather fit the dataset and every number is one of a sample. For the datasets' own use.
template <class D>
void check_gather(const D& data, std::span<const Index> which, std::span<const float> x, std::span<const typename D::Target> y) {
  detail::check_gather(data.size(), which, {x.size(), y.size(), data.sample_shape().elements(), data.target_shape().elements()});
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/dataset.hpp>
#endif
