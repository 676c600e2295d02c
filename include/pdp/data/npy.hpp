#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>

/// Reads NumPy's .npy files, versions 1.0 to 3.0 of the format (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
/// Their elements must be little-endian float32, float64, int32, int64, uint16 or uint8, in C order.
namespace pdp::data {

/// The header of a .npy file.
struct NpyHeader {
  static constexpr std::uint32_t largest = 1 << 16;   // bytes of its text
  static constexpr std::size_t most_dimensions = 64;  // as in NumPy 2
  ElementType type = ElementType::F32;                // F32, F64, I32, I64, U16 or U8
  std::vector<Index> extents{};                       // outermost first; empty for a scalar
  std::uint64_t data_begin = 0;                       // offset of the first element in the file
  [[nodiscard]] Index elements() const;
  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// Reads the header of a .npy file. Throws FileError if the file does not follow the format, is truncated or has further bytes, or if its
/// elements are of another type or in Fortran order.
[[nodiscard]] NpyHeader read_npy_header(const Input& input);

/// An array from a .npy file.
template <Element T>
struct Npy {
  std::vector<Index> extents{};  // outermost first; empty for a scalar
  std::vector<T> values{};       // row-major
};

namespace detail {
/// Throws FileError unless the elements have this type.
void check_npy_type(const Input& input, const NpyHeader& header, ElementType wanted);
}  // namespace detail

/// Reads a whole .npy file into memory. T must be the type of its elements. Throws FileError as read_npy_header does, and for another
/// type. map_npy reads rows of any of the types when they are needed.
template <Element T>
[[nodiscard]] Npy<T> read_npy(const Input& input) {
  NpyHeader header = read_npy_header(input);
  detail::check_npy_type(input, header, *element_type_of<T>);
  std::vector<T> values(as_size(header.elements()));
  input.read_at(header.data_begin, std::as_writable_bytes(std::span{values}));
  return {std::move(header.extents), std::move(values)};
}
template <Element T>
[[nodiscard]] Npy<T> read_npy(const std::filesystem::path& path) {
  return read_npy<T>(Input{path});
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/npy.hpp>
#endif
