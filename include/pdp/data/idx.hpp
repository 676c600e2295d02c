#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/gzip.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// The contents of an IDX file of unsigned bytes: LeCun's format, in which MNIST comes (https://yann.lecun.com/exdb/mnist).
struct Idx {
  std::vector<Index> extents;        // 1 to 4, outermost first; in MNIST the first one counts the samples
  std::vector<std::uint8_t> values;  // row-major
};

/// Reads an IDX file, plain or packed by gzip (told by its contents, not by its name). Throws FileError, also for a byte too few or too
/// many. Memory grows with what is really there: a header that promises more costs nothing.
Idx read_idx(const Input& input);

inline Idx read_idx(const std::filesystem::path& path) { return read_idx(Input{path}); }

namespace detail {

inline std::string hex(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[byte >> 4], digits[byte & 15]};
}

/// Fills `bytes` from the header or throws FileError.
inline void read_idx_header(UnpackedBytes& from, std::span<std::uint8_t> bytes, const std::string& name) {
  const std::size_t found = from.read(std::as_writable_bytes(bytes));
  if (found < bytes.size())
    throw FileError{text(name, ": expected an IDX file, found that it ends within the header (", bytes.size() - found,
                         " more bytes expected). The file is truncated or of another kind: copy or download it again.")};
}

inline std::vector<Index> read_idx_extents(UnpackedBytes& from, const std::string& name) {
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

inline std::size_t idx_elements(const std::vector<Index>& extents, const std::string& name) {
  Index product = 1;
  for (const Index extent : extents) {
    if (extent > 0 && product > std::numeric_limits<Index>::max() / extent)
      throw FileError{text(name, ": the extents in its IDX header multiply to more than 2^63 bytes, so the header is damaged. ",
                           "Copy or download the file again.")};
    product *= extent;
  }
  return static_cast<std::size_t>(product);
}

}  // namespace detail

inline Idx read_idx(const Input& input) {
  const std::string& name = input.name();
  UnpackedBytes from{input};
  Idx idx{detail::read_idx_extents(from, name), {}};
  const std::size_t expected = detail::idx_elements(idx.extents, name);
  const auto wrong_size = [&](const std::string& found) {
    throw FileError{text(name, ": expected ", expected, " bytes of data after the IDX header, found ", found,
                         ". The file is damaged: copy or download it again.")};
  };

  const std::size_t first_piece = std::max<std::size_t>(1 << 16, from.known_size());
  while (idx.values.size() < expected) {  // doubling, so that no more than twice of what was found is allocated
    const std::size_t have = idx.values.size();
    idx.values.resize(std::min(expected, std::max(first_piece, 2 * have)));
    const auto piece = std::span{idx.values}.subspan(have);
    const std::size_t found = from.read(std::as_writable_bytes(piece));
    if (found < piece.size()) wrong_size(text(have + found));
  }
  std::byte beyond{};
  if (from.read({&beyond, 1}) > 0) wrong_size("more");
  return idx;
}

}  // namespace pdp::data
