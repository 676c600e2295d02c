#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/mapped_file.hpp>

namespace pdp::data {

/// The layout of a file of raw numbers: rows of one shape, row-major and little-endian, behind `skip` bytes.
struct RawLayout {
  ElementType type = ElementType::F32;  // F32, F64, I32, I64, U16 or U8
  Shape row{};                          // of one row
  std::uint64_t skip = 0;               // bytes before the first row
};

/// Rows of numbers in a file that is mapped into memory: those of one extent of an array. Copies share the mapping.
class MappedRows {
 public:
  MappedRows(Input input, const RawLayout& layout);

  [[nodiscard]] const std::string& name() const { return file_->name(); }
  [[nodiscard]] Index size() const { return size_; }  // rows
  [[nodiscard]] const Shape& row_shape() const { return layout_.row; }
  [[nodiscard]] ElementType type() const { return layout_.type; }

  /// Copies the rows listed in `which`, [which.size(), row_shape()]. Rounds float64, int32 and int64 to float. The numbers of the rows must
  /// be from 0 to size() - 1. Throws FileError if the file has shrunk.
  void gather(std::span<const Index> which, std::span<float> to) const;
  /// Copies whole numbers. Throws FileError if the file has shrunk, its elements are not whole numbers, or one does not fit 32 bits.
  void gather(std::span<const Index> which, std::span<std::int32_t> to) const;

 private:
  template <class From, class To>
  void copy(std::span<const Index> which, std::span<To> to) const;
  void before_reading(std::span<const Index> which) const;

  std::shared_ptr<const MappedFile> file_;
  RawLayout layout_;
  Index size_ = 0;
  std::size_t row_bytes_ = 0;
};

/// Maps a .npy file. Its first extent counts the rows, and the others are the shape of a row; the rows of a vector have Shape{1}. Throws
/// FileError as read_npy_header does, and if the array is a scalar, has more than five dimensions, or has an extent of 0.
[[nodiscard]] MappedRows map_npy(Input input);
[[nodiscard]] MappedRows map_npy(const std::filesystem::path& path);

/// Maps a file of raw numbers. Throws ConfigError if the layout has another type or no shape, and FileError if the file does not have a
/// whole number of rows, 1 or more.
[[nodiscard]] MappedRows map_raw(Input input, const RawLayout& layout);
[[nodiscard]] MappedRows map_raw(const std::filesystem::path& path, const RawLayout& layout);

/// A Dataset over mapped files, which may be larger than memory. gather() reads only the pages of the listed samples. Copies share the
/// mapping.
///
/// T is std::int32_t for class numbers, and float for other targets. S is std::int32_t for samples of tokens. The files must not change
/// while the dataset is in use; see MappedFile.
template <TargetElement T, SampleElement S = float>
class Mapped {
 public:
  using Target = T;
  using Sample = S;

  /// Takes one row of `x` and one of `y` for each sample. Both may be the same rows. Throws FileError if their numbers of rows differ, or
  /// if class numbers or tokens are not stored as whole numbers.
  Mapped(MappedRows x, MappedRows y);

  [[nodiscard]] Index size() const { return x_.size(); }
  [[nodiscard]] Shape sample_shape() const { return x_.row_shape(); }
  [[nodiscard]] Shape target_shape() const { return y_.row_shape(); }

  /// Copies samples as described by the concept Dataset. Throws FileError if a file has shrunk, or a class number does not fit 32 bits.
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const;

 private:
  MappedRows x_, y_;
};

#ifdef PDP_SEPARATE_CORE
extern template class Mapped<std::int32_t, float>;
extern template class Mapped<float, float>;
extern template class Mapped<std::int32_t, std::int32_t>;
extern template class Mapped<float, std::int32_t>;
#endif

static_assert(Dataset<Mapped<std::int32_t>>);
static_assert(Dataset<Mapped<float>>);
static_assert(Dataset<Mapped<std::int32_t, std::int32_t>>);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/mapped.hpp>
#endif
