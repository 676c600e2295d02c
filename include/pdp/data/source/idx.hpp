#pragma once

/// Definitions for pdp/data/idx.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/gzip.hpp>
#include <pdp/data/idx.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

namespace detail {

PDP_INLINE std::string hex(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[byte >> 4], digits[byte & 15]};
}

/// Fills `bytes` from the header. Throws FileError if the file ends too early.
PDP_INLINE void read_idx_header(UnpackedBytes& from, std::span<std::uint8_t> bytes, const std::string& name) {
  const std::size_t found = from.read(std::as_writable_bytes(bytes));
  if (found < bytes.size())
    throw FileError{text(name, ": expected an IDX file, found that it ends within the header (", bytes.size() - found,
                         " more bytes expected). The file is truncated or of another kind: copy or download it again.")};
}

PDP_INLINE std::vector<Index> read_idx_extents(UnpackedBytes& from, const std::string& name) {
  std::array<std::uint8_t, 4> magic{};
  read_idx_header(from, magic, name);
  const auto [zero, also_zero, type, dimensions] = magic;
  if (zero != 0 || also_zero != 0)
    throw FileError{text(name, ": expected an IDX file, which begins with the bytes 00 00, found ", hex(zero), " ", hex(also_zero),
                         ". Give an IDX file as MNIST's, plain or packed by gzip.")};
  if (type != 8)
    throw FileError{
        text(name, ": expected IDX elements of type 08 (unsigned bytes), found type ", hex(type), ". Convert the file to bytes.")};
  if (dimensions < 1 || dimensions > Shape::max_rank)
    throw FileError{text(name, ": expected 1 to 4 IDX dimensions, found ", int{dimensions}, ". Give an IDX file as MNIST's.")};

  std::vector<Index> extents(dimensions);
  for (Index& extent : extents) {
    std::array<std::uint8_t, 4> big_endian{};
    read_idx_header(from, big_endian, name);
    for (const std::uint8_t byte : big_endian) extent = extent << 8 | byte;
  }
  return extents;
}

PDP_INLINE std::size_t idx_elements(const std::vector<Index>& extents, const std::string& name) {
  Index product = 1;
  for (const Index extent : extents) {
    if (extent > 0 && product > std::numeric_limits<Index>::max() / extent)
      throw FileError{text(name, ": the extents in its IDX header multiply to more than 2^63 bytes, so the header is damaged. ",
                           "Copy or download the file again.")};
    product *= extent;
  }
  return as_size(product);
}

inline constexpr std::size_t most_unpacked_at_once = 64 << 20;  // bytes; values() counts those of a larger packed file first

}  // namespace detail

PDP_INLINE IdxFile::IdxFile(const std::filesystem::path& path) : IdxFile{Input{path}} {}
PDP_INLINE IdxFile::IdxFile(Input input)
    : input_{std::move(input)},
      from_{input_},
      extents_{detail::read_idx_extents(from_, input_.name())},
      expected_{detail::idx_elements(extents_, input_.name())} {}

PDP_INLINE std::vector<std::uint8_t> IdxFile::values() {
  std::size_t first_piece = 1 << 16;
  if (!from_.is_packed() || expected_ > detail::most_unpacked_at_once) {
    check_size();
    first_piece = expected_;
  }
  std::vector<std::uint8_t> values;
  while (values.size() < expected_) {  // doubles `values`, so that at most twice the bytes found so far are allocated
    const std::size_t have = values.size();
    resize(values, std::min(expected_, std::max(first_piece, 2 * have)));
    const auto piece = std::span{values}.subspan(have);
    const std::size_t found = from_.read(std::as_writable_bytes(piece));
    if (found < piece.size()) wrong_size(text(have + found));
  }
  std::byte beyond{};
  if (from_.read({&beyond, 1}) > 0) wrong_size("more");
  return values;
}

PDP_INLINE void IdxFile::check_size() const {
  if (!from_.is_packed()) {
    const std::uint64_t found = input_.size() - header_bytes();
    if (found != expected_) wrong_size(text(found));
    return;
  }
  UnpackedBytes again{input_};
  std::vector<std::byte> piece(1 << 16);
  const std::size_t all = header_bytes() + expected_;
  for (std::size_t left = all; left > 0;) {
    const std::size_t wanted = std::min(left, piece.size());
    const std::size_t found = again.read(std::span{piece}.first(wanted));
    left -= found;
    if (found < wanted) wrong_size(text(expected_ - left));
  }
  if (again.read(std::span{piece}.first(1)) > 0) wrong_size("more");
}

PDP_INLINE void IdxFile::resize(std::vector<std::uint8_t>& values, std::size_t size) const {
  try {
    values.resize(size);
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw FileError{text(name(), ": not enough memory for its ", expected_, " bytes. Free memory, or use a smaller file.")};
  }
}

PDP_INLINE void IdxFile::wrong_size(std::string_view found) const {
  throw FileError{text(name(), ": expected ", expected_, " bytes of data after the IDX header, found ", found,
                       ". The file is damaged: copy or download it again.")};
}

PDP_INLINE Idx read_idx(Input input) {
  IdxFile file{std::move(input)};
  return {file.extents(), file.values()};
}

PDP_INLINE Idx read_idx(const std::filesystem::path& path) { return read_idx(Input{path}); }

}  // namespace pdp::data
