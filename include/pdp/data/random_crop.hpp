#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/image_changes.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// A Dataset of parts of images, each of height x width pixels. In each epoch of a training, each image gives another part, at a random
/// place; an evaluation gets the part in the middle. An image has the shape [channels, height, width], or [height, width] for one channel,
/// and so have the parts.
///
///   const data::RandomCrop parts{set, 24, 24};
template <Dataset D>
class RandomCrop {
  static_assert(std::same_as<SampleOf<D>, float>, "pdp: the samples of this dataset are tokens, and not images");

 public:
  using Target = typename D::Target;

  /// Throws ShapeError if the samples are not images, or smaller than the parts.
  RandomCrop(D set, Index height, Index width)
      : set_{std::move(set)}, size_{detail::ImageSize::of("RandomCrop", set_.sample_shape())}, height_{height}, width_{width} {
    if (height < 1 || width < 1 || height > size_.height || width > size_.width)
      throw ShapeError{text("data::RandomCrop was asked for parts of ", height, " x ", width, " pixels of images of ", size_.height, " x ",
                            size_.width, "; give it a size from 1 x 1 to that of the images")};
  }

  [[nodiscard]] Index size() const { return set_.size(); }
  [[nodiscard]] Shape sample_shape() const {
    return set_.sample_shape().rank() == 2 ? Shape{height_, width_} : Shape{size_.channels, height_, width_};
  }
  [[nodiscard]] Shape target_shape() const { return set_.target_shape(); }

  /// Copies samples as described by the concept Dataset. Gathers one whole image at a time.
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const {
    const auto middle = [&](Index) { return std::pair{(size_.height - height_) / 2, (size_.width - width_) / 2}; };
    cut(
        which, x, y, [&](auto one, auto image, auto target) { set_.gather(one, image, target); }, middle);
  }
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y, const TrainingEpoch& epoch) const {
    const auto anywhere = [&](Index sample) {
      random::Stream stream{epoch.key(sample)};
      const auto below = [&](Index count) { return as_index(stream.below(static_cast<std::uint64_t>(count))); };
      const Index down = below(size_.height - height_ + 1);
      return std::pair{down, below(size_.width - width_ + 1)};
    };
    cut(
        which, x, y, [&](auto one, auto image, auto target) { gather_in_epoch(set_, one, image, target, epoch.inner()); }, anywhere);
  }

 private:
  /// Copies the part at place(sample), a row and a column, of each image. gather_whole(sample, image, target) copies an image.
  template <class Gather, class Place>
  void cut(std::span<const Index> which, std::span<float> x, std::span<Target> y, const Gather& gather_whole, const Place& place) const {
    const Index of_channel = size_.height * size_.width;
    const std::size_t of_target = as_size(target_shape().elements());
    std::vector<float> image(as_size(size_.channels * of_channel));
    auto to = x.begin();
    for (std::size_t row = 0; row < which.size(); ++row) {
      gather_whole(which.subspan(row, 1), std::span<float>{image}, y.subspan(row * of_target, of_target));
      const auto [down, right] = place(which[row]);
      for (Index channel = 0; channel < size_.channels; ++channel)
        for (Index line = 0; line < height_; ++line)
          to = std::copy_n(image.data() + channel * of_channel + (down + line) * size_.width + right, width_, to);
    }
  }

  D set_;
  detail::ImageSize size_;
  Index height_, width_;
};

static_assert(TakesEpoch<RandomCrop<InMemory<std::int32_t>>> && TakesEpoch<RandomCrop<InMemory<float>>>);

}  // namespace pdp::data
