#pragma once

#include <span>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

/// Random changes of images, for data::Augmented. An image has the shape [channels, height, width], or [height, width] for one channel.
///
///   const data::Augmented moving{set, data::RandomShift{set.sample_shape(), 2}};
namespace pdp::data {

namespace detail {

/// The channels of an image in memory, one after another.
struct ImageSize {
  Index channels, height, width;

  /// Throws ShapeError, which names `change`, unless the shape is that of an image.
  static ImageSize of(const char* change, const Shape& image);
  /// Throws ShapeError unless an image has as many values as the shape says.
  void check(const char* change, std::span<const float> image) const;
};

}  // namespace detail

/// Mirrors an image with a probability: left to right by default, or upside down.
class RandomFlip {
 public:
  enum class Axis { horizontal, vertical };

  /// Throws ShapeError if `image` is not the shape of an image, and ConfigError unless 0 <= probability <= 1.
  explicit RandomFlip(const Shape& image, double probability = 0.5, Axis axis = Axis::horizontal);

  /// Throws ShapeError if the image has another number of values.
  void operator()(random::Key key, std::span<float> image) const;

 private:
  detail::ImageSize size_;
  double probability_;
  Axis axis_;
};

/// Moves an image by up to `most` pixels up or down, and by up to `most` pixels to the left or right. Each distance is equally likely.
/// Pixels that come from outside the image have the value `background`. The result is that of PyTorch's RandomCrop with padding, if the
/// crop has the size of the image.
class RandomShift {
 public:
  /// Throws ShapeError if `image` is not the shape of an image, and ConfigError if `most` is negative.
  RandomShift(const Shape& image, Index most, float background = 0);

  /// Throws ShapeError if the image has another number of values.
  void operator()(random::Key key, std::span<float> image) const;

 private:
  detail::ImageSize size_;
  Index most_;
  float background_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/image_changes.hpp>
#endif
