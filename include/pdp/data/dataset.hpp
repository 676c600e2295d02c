#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/cast.hpp>
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

/// Throws ShapeError unless the spans of a gather fit the dataset and every number is one of a sample. For the datasets' own use.
template <class D>
void check_gather(const D& data, std::span<const Index> which, std::span<const float> x, std::span<const typename D::Target> y) {
  const auto check = [&](const char* span, std::size_t found, const Shape& shape) {
    const Index expected = as_index(which.size()) * shape.elements();
    if (as_index(found) != expected)
      throw ShapeError{text("gather of ", which.size(), " samples: expected ", expected, " elements in ", span, " (", shape.elements(),
                            " for each sample), found ", found, ". Size the span by the number of samples that are asked for.")};
  };
  check("x", x.size(), data.sample_shape());
  check("y", y.size(), data.target_shape());
  for (const Index sample : which)
    if (sample < 0 || sample >= data.size())
      throw ShapeError{text("gather: expected sample numbers from 0 to ", data.size() - 1, ", found ", sample,
                            ". Make the sampler with the size of this dataset.")};
}

}  // namespace pdp::data
