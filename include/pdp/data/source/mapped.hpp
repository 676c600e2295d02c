#pragma once

/// Definitions for pdp/data/mapped.hpp; see pdp/core/separate_compilation.hpp.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/mapped_file.hpp>
#include <pdp/data/npy.hpp>

namespace pdp::data {

static_assert(std::endian::native == std::endian::little, "mapped files are little-endian, and are read as they lie in memory");

PDP_INLINE MappedRows::MappedRows(Input input, const RawLayout& layout)
    : file_{std::make_shared<const MappedFile>(std::move(input))}, layout_{layout} {
  std::size_t bytes = 0;
  switch (layout.type) {
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::I32:
    case ElementType::I64:
    case ElementType::U16:
    case ElementType::U8:
      bytes = info(layout.type).bits / 8;
      break;
    default:
      throw ConfigError{text(name(), ": expected elements of type F32, F64, I32, I64, U16 or U8, found ", info(layout.type).name,
                             ". Convert the file to one of these types.")};
  }
  std::uint64_t row = bytes;
  if (!layout.row.known()) throw ConfigError{text(name(), ": expected the shape of a row, found none. Give it, e.g. Shape{784}.")};
  for (int axis = 0; axis < layout.row.rank(); ++axis) {
    const Index extent = layout.row[axis];
    if (extent < 1 || static_cast<std::uint64_t>(extent) > std::numeric_limits<Index>::max() / row)
      throw ConfigError{text(name(), ": expected rows with extents of 1 or more and less than 2^63 bytes, found ", text(layout.row),
                             ". Give the shape of one row.")};
    row *= static_cast<std::uint64_t>(extent);
  }
  row_bytes_ = row;
  const std::uint64_t there = file_->input().size() < layout.skip ? 0 : file_->input().size() - layout.skip;
  if (there == 0 || there % row != 0)
    throw FileError{text(name(), ": expected a multiple of ", row, " bytes (a row of shape ", text(layout.row), " and type ",
                         info(layout.type).name, ") after the first ", layout.skip, ", found ", there,
                         ". Check the shape and the type, and that the file is complete.")};
  size_ = as_index(there / row);
}

PDP_INLINE void MappedRows::before_reading(std::span<const Index> which) const {
  file_->check_size();
  // The pages of consecutive rows would otherwise be read one after the other.
  constexpr std::size_t page = 4096;
  for (std::size_t first = 0, last = 0; first < which.size(); first = last) {
    last = first + 1;
    while (last < which.size() && which[last] == which[last - 1] + 1) ++last;
    const std::size_t bytes = (last - first) * row_bytes_;
    if (bytes > page) file_->prefetch(layout_.skip + as_size(which[first]) * row_bytes_, bytes);
  }
}

template <class From, class To>
void MappedRows::copy(std::span<const Index> which, std::span<To> to) const {
  const std::byte* const first = file_->bytes().data() + layout_.skip;
  const std::size_t width = row_bytes_ / sizeof(From);
  To* out = to.data();
  for (const Index row : which) {
    const std::byte* const from = first + as_size(row) * row_bytes_;
    if constexpr (std::same_as<From, To>) {
      std::memcpy(out, from, row_bytes_);
      out += width;
    } else {
      for (std::size_t i = 0; i < width; ++i) {
        From value{};
        std::memcpy(&value, from + i * sizeof value, sizeof value);  // the address may be unaligned
        if constexpr (std::is_integral_v<To> && sizeof(From) > sizeof(To))
          if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max())
            throw FileError{text(name(), ": expected class numbers or tokens that fit 32 bits, found ", value, " in row ", row,
                                 ". Number them from 0.")};
        *out++ = static_cast<To>(value);
      }
    }
  }
}

PDP_INLINE void MappedRows::gather(std::span<const Index> which, std::span<float> to) const {
  before_reading(which);
  switch (layout_.type) {
    case ElementType::F64:
      return copy<double>(which, to);
    case ElementType::I32:
      return copy<std::int32_t>(which, to);
    case ElementType::I64:
      return copy<std::int64_t>(which, to);
    case ElementType::U16:
      return copy<std::uint16_t>(which, to);
    case ElementType::U8:
      return copy<std::uint8_t>(which, to);
    default:
      return copy<float>(which, to);
  }
}

PDP_INLINE void MappedRows::gather(std::span<const Index> which, std::span<std::int32_t> to) const {
  before_reading(which);
  switch (layout_.type) {
    case ElementType::I32:
      return copy<std::int32_t>(which, to);
    case ElementType::I64:
      return copy<std::int64_t>(which, to);
    case ElementType::U16:
      return copy<std::uint16_t>(which, to);
    case ElementType::U8:
      return copy<std::uint8_t>(which, to);
    default:
      throw FileError{text(name(), ": expected class numbers or tokens of type I32, I64, U16 or U8, found ", info(layout_.type).name,
                           ". Store whole numbers, or use float in place of std::int32_t.")};
  }
}

PDP_INLINE MappedRows map_npy(Input input) {
  const NpyHeader header = read_npy_header(input);
  const auto& [type, extents, begin] = header;
  if (extents.empty() || extents.size() > 1 + as_size(Shape::max_rank))
    throw FileError{text(input.name(), ": expected an array of 1 to ", 1 + Shape::max_rank, " dimensions, found ", extents.size(),
                         ". Change its shape with a.reshape(samples, -1).")};
  if (header.elements() == 0)
    throw FileError{text(input.name(), ": expected rows with values, found an array without elements. Check the program that wrote it.")};
  Shape row{1};
  if (extents.size() == 2) row = Shape{extents[1]};
  if (extents.size() == 3) row = Shape{extents[1], extents[2]};
  if (extents.size() == 4) row = Shape{extents[1], extents[2], extents[3]};
  if (extents.size() == 5) row = Shape{extents[1], extents[2], extents[3], extents[4]};
  return {std::move(input), {.type = type, .row = row, .skip = begin}};
}

PDP_INLINE MappedRows map_npy(const std::filesystem::path& path) { return map_npy(Input{path}); }

PDP_INLINE MappedRows map_raw(Input input, const RawLayout& layout) { return {std::move(input), layout}; }

PDP_INLINE MappedRows map_raw(const std::filesystem::path& path, const RawLayout& layout) { return map_raw(Input{path}, layout); }

template <TargetElement T, SampleElement S>
Mapped<T, S>::Mapped(MappedRows x, MappedRows y) : x_{std::move(x)}, y_{std::move(y)} {
  if (x_.size() != y_.size())
    throw FileError{
        text(y_.name(), ": expected ", x_.size(), " rows, as in ", x_.name(), ", found ", y_.size(), ". Give one target for each sample.")};
  y_.gather({}, std::span<T>{});  // checks the type
  x_.gather({}, std::span<S>{});
}

template <TargetElement T, SampleElement S>
void Mapped<T, S>::gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const {
  check_gather(*this, which, x, y);
  x_.gather(which, x);
  y_.gather(which, y);
}

}  // namespace pdp::data
