#pragma once

/// Definitions for pdp/data/image_changes.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/image_changes.hpp>

namespace pdp::data {

namespace detail {

PDP_INLINE ImageSize ImageSize::of(const char* change, const Shape& image) {
  if (!image.known() || image.rank() < 2 || image.rank() > 3)
    throw ShapeError{text("data::", change, " was given samples of shape ", text(image),
                          "; expected images: [channels, height, width] or [height, width]")};
  const int axes = image.rank();
  return {axes == 3 ? image[0] : 1, image[axes - 2], image[axes - 1]};
}
PDP_INLINE void ImageSize::check(const char* change, std::span<const float> image) const {
  if (as_index(image.size()) != channels * height * width)
    throw ShapeError{text("data::", change, " changes images of shape ", text(Shape{channels, height, width}),
                          ", but was called with one of ", image.size(), " values; give it the shape of the dataset's samples")};
}

/// Moves the values of a row or of a row of rows by `by` elements towards its end. Those that come from outside are `background`.
inline void shift(std::span<float> values, Index by, float background) {
  const auto distance = std::min(as_size(by < 0 ? -by : by), values.size());
  const auto far = static_cast<std::ptrdiff_t>(distance);
  if (by >= 0) {
    std::copy_backward(values.begin(), values.end() - far, values.end());
    std::ranges::fill(values.first(distance), background);
  } else {
    std::copy(values.begin() + far, values.end(), values.begin());
    std::ranges::fill(values.last(distance), background);
  }
}

}  // namespace detail

PDP_INLINE RandomFlip::RandomFlip(const Shape& image, double probability, Axis axis)
    : size_{detail::ImageSize::of("RandomFlip", image)}, probability_{probability}, axis_{axis} {
  if (!(probability >= 0 && probability <= 1))
    throw ConfigError{text("data::RandomFlip was given the probability ", probability, "; give it one from 0 to 1")};
}
PDP_INLINE void RandomFlip::operator()(random::Key key, std::span<float> image) const {
  size_.check("RandomFlip", image);
  if (random::uniform<double>(key, 0) >= probability_) return;
  const std::size_t height = as_size(size_.height), width = as_size(size_.width);
  for (std::size_t channel = 0; channel < as_size(size_.channels); ++channel) {
    const std::span<float> all = image.subspan(channel * height * width, height * width);
    if (axis_ == Axis::horizontal)
      for (std::size_t row = 0; row < height; ++row) std::ranges::reverse(all.subspan(row * width, width));
    else
      for (std::size_t row = 0; row < height / 2; ++row)
        std::ranges::swap_ranges(all.subspan(row * width, width), all.subspan((height - 1 - row) * width, width));
  }
}

PDP_INLINE RandomShift::RandomShift(const Shape& image, Index most, float background)
    : size_{detail::ImageSize::of("RandomShift", image)}, most_{most}, background_{background} {
  if (most < 0) throw ConfigError{text("data::RandomShift was given the distance ", most, "; give it 0 pixels or more")};
}
PDP_INLINE void RandomShift::operator()(random::Key key, std::span<float> image) const {
  size_.check("RandomShift", image);
  random::Stream stream{key};
  const auto distance = [&] { return as_index(stream.below(static_cast<std::uint64_t>(2 * most_ + 1))) - most_; };
  const Index down = distance(), right = distance();
  const std::size_t height = as_size(size_.height), width = as_size(size_.width);
  for (std::size_t channel = 0; channel < as_size(size_.channels); ++channel) {
    const std::span<float> all = image.subspan(channel * height * width, height * width);
    detail::shift(all, down * size_.width, background_);
    for (std::size_t row = 0; row < height; ++row) detail::shift(all.subspan(row * width, width), right, background_);
  }
}

}  // namespace pdp::data
