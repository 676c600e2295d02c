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

/// Handwritten digits: 784 values each (28 rows of 28), a class number from 0 to 9. Copies share the bytes.
/// A value is (byte / 255 - 0.1307) / 0.3081: the mean and the deviation of MNIST's training set, as everybody takes them.
class Digits {
 public:
  using Target = std::int32_t;
  static constexpr Index pixels = 784;
  static constexpr int classes = 10;

  /// Reads two IDX files. Throws FileError where they are not 28 x 28 images with a label from 0 to 9 for each.
  Digits(const std::filesystem::path& images_file, const std::filesystem::path& labels_file);

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return Shape{pixels}; }
  [[nodiscard]] Shape target_shape() const { return Shape{1}; }

  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const;

  /// The digits [first, last) of these.
  [[nodiscard]] Digits part(Index first, Index last) const;

 private:
  struct Bytes;

  [[nodiscard]] const std::uint8_t* image(Index sample) const;

  std::shared_ptr<const Bytes> bytes_;
  Index first_ = 0;
  Index size_ = 0;
};

/// The MNIST files of a folder, each plain or packed (.gz). Where the training files are there, training and test set are as published
/// (60,000 and 10,000 digits). Where there is the test set only, its first nine tenths are for training and the last tenth for testing.
class Mnist {
 public:
  /// Throws FileError, which says what was looked for, where the folder or a file is missing or damaged.
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
