#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

/// Handwritten digits of MNIST: images of shape [1, 28, 28], each with a class number from 0 to 9. Copies share the memory.
///
/// A value is (byte / 255 - 0.1307) / 0.3081, with the usual mean and standard deviation of MNIST's training set.
class Digits {
 public:
  using Target = std::int32_t;
  static constexpr Index side = 28, pixels = side * side;
  static constexpr int classes = 10;
  static constexpr float mean = 0.1307f, deviation = 0.3081f;
  static constexpr float background = (0.0f - mean) / deviation;  // the value of a byte of 0

  /// Reads two IDX files. Throws FileError if they do not hold 28 x 28 images and a label from 0 to 9 for each image.
  Digits(const std::filesystem::path& images_file, const std::filesystem::path& labels_file);

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return Shape{1, side, side}; }
  [[nodiscard]] Shape target_shape() const { return Shape{1}; }

  /// Copies samples as described by the concept Dataset, with normalised values.
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const;

  /// Copies the pixels of samples, in the order given, as byte / 255. Throws ShapeError as gather() does.
  void gather_pixels(std::span<const Index> which, std::span<float> x) const;

  /// Returns digits [first, last) of these, sharing the memory. Throws ShapeError unless 0 <= first <= last <= size().
  [[nodiscard]] Digits part(Index first, Index last) const;

 private:
  struct Bytes;

  [[nodiscard]] const std::uint8_t* image(Index sample) const;

  std::shared_ptr<const Bytes> bytes_;
  Index first_ = 0;
  Index size_ = 0;
};

/// The MNIST files in a folder, each plain or compressed (.gz). If the training files are present, training and test set are as published
/// (60,000 and 10,000 digits). If only the test set is present, its first nine tenths are the training set and its last tenth is the test
/// set.
class Mnist {
 public:
  /// Throws FileError if the folder or a file is missing or damaged. The message says what was expected.
  explicit Mnist(const std::filesystem::path& folder);

  [[nodiscard]] Digits train() const { return train_; }
  [[nodiscard]] Digits test() const { return test_; }

 private:
  Mnist(Digits train, Digits test) : train_{std::move(train)}, test_{std::move(test)} {}

  static Mnist load(const std::filesystem::path& folder);

  Digits train_;
  Digits test_;
};

static_assert(Dataset<Digits>);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/mnist.hpp>
#endif
