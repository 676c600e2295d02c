#pragma once

/// Definitions for pdp/data/npy.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/npy.hpp>

namespace pdp::data {

static_assert(std::endian::native == std::endian::little, ".npy files are little-endian, and are read as they lie in memory");

namespace detail {

/// The name of an element type in a .npy file, and in NumPy.
struct NpyType {
  ElementType type;
  std::string_view descr, name;
};
inline constexpr std::array<NpyType, 6> npy_types{{{ElementType::F32, "<f4", "float32"},
                                                   {ElementType::F64, "<f8", "float64"},
                                                   {ElementType::I32, "<i4", "int32"},
                                                   {ElementType::I64, "<i8", "int64"},
                                                   {ElementType::U16, "<u2", "uint16"},
                                                   {ElementType::U8, "|u1", "uint8"}}};

PDP_INLINE std::string npy_name(ElementType type) {
  const auto* const found = std::ranges::find(npy_types, type, &NpyType::type);
  return std::string{found == npy_types.end() ? info(type).name : found->name};
}

/// Parses the text of the header, a dictionary in Python: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyText {
 public:
  NpyText(std::string_view rest, const std::string& name) : rest_{rest}, name_{name} {}

  /// Returns the header, without data_begin.
  NpyHeader read() {
    NpyHeader header;
    std::array<bool, 3> found{};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted("a key");
      constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
      const auto number = as_size(std::ranges::find(keys, key) - keys.begin());
      if (number == keys.size() || std::exchange(found[number], true))
        bad("its header has the key ", in_quotes(key), number == keys.size() ? "" : " twice");
      expect(':');
      if (number == 0) header.type = type();
      if (number == 1) check_order();
      if (number == 2) header.extents = extents();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) bad("its header continues after the closing brace");
    if (std::ranges::find(found, false) != found.end()) bad("its header lacks one of the keys descr, fortran_order and shape");
    return header;
  }

  /// Throws the FileError for a file that does not follow the format.
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... found) const {
    throw FileError{text(name_, ": expected a .npy file, found that ", found..., ". Give a whole file, as numpy.save writes it.")};
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n\f"), rest_.size())); }

  bool accept(char letter) {
    skip_spaces();
    if (!rest_.starts_with(letter)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char letter) {
    if (!accept(letter)) bad("its header has ", next(), " in place of '", letter, "'");
  }
  bool accept(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] std::string next() const { return rest_.empty() ? "its end" : in_quotes(rest_.substr(0, 20)); }

  std::string_view quoted(const char* wanted) {
    skip_spaces();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) bad("its header has ", next(), " in place of ", wanted);
    const std::string_view inner = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inner;
  }

  ElementType type() {
    skip_spaces();
    if (rest_.starts_with('[')) other_type("records of several fields", "Save each field as an array of its own");
    const std::string_view descr = quoted("the type of the elements");
    const auto* const found = std::ranges::find(npy_types, descr, &NpyType::descr);
    if (found != npy_types.end()) return found->type;
    const char* remedy = "Convert it with a.astype(numpy.float32) or to another of these types";
    if (descr == "|O") other_type("Python objects", remedy);
    if (descr.starts_with('>')) other_type(text("big-endian elements of type ", in_quotes(descr)), remedy);
    other_type(text("elements of type ", in_quotes(descr)), remedy);
  }
  [[noreturn]] void other_type(std::string_view found, std::string_view remedy) const {
    throw FileError{
        text(name_, ": expected little-endian float32, float64, int32, int64, uint16 or uint8, found ", found, ". ", remedy, ".")};
  }

  void check_order() {
    if (accept("True"))
      throw FileError{text(name_, ": expected values in C order, found Fortran order. Save numpy.ascontiguousarray(a) instead of a.")};
    if (!accept("False")) bad("its header has ", next(), " in place of True or False");
  }

  std::vector<Index> extents() {
    std::vector<Index> extents;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) bad("its shape has ", next(), " in place of a comma");
      if (extents.size() == NpyHeader::most_dimensions) bad("its array has more than ", NpyHeader::most_dimensions, " dimensions");
      extents.push_back(extent());
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma) bad("its shape is a number in place of a tuple");
    return extents;
  }
  Index extent() {
    skip_spaces();
    Index extent = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
    if (error != std::errc{} || extent < 0) bad("its shape has ", next(), " in place of a number from 0 to 2^63 - 1");
    rest_.remove_prefix(as_size(end - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // written by Python 2
    return extent;
  }

  std::string_view rest_;
  const std::string& name_;
};

}  // namespace detail

PDP_INLINE Index NpyHeader::elements() const {
  Index product = 1;
  for (const Index extent : extents) product *= extent;
  return product;
}

PDP_INLINE NpyHeader read_npy_header(const Input& input) {
  const detail::NpyText format{{}, input.name()};
  constexpr std::string_view magic = "\x93NUMPY";
  std::array<std::uint8_t, 12> begin{};
  const std::size_t found = input.read_at(0, std::as_writable_bytes(std::span{begin}));
  if (found < 10 ||
      !std::equal(magic.begin(), magic.end(), begin.begin(), [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
    format.bad("it does not begin with the signature of the format and a length");
  const int version = begin[6];
  if (version < 1 || version > 3 || begin[7] != 0) format.bad("it has version ", version, ".", int{begin[7]}, ", not 1.0, 2.0 or 3.0");
  const std::size_t prefix = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  for (std::size_t byte = prefix; byte-- > 8;) length = length << 8 | begin[byte];
  if (length > NpyHeader::largest) format.bad("its header has ", length, " bytes, more than ", NpyHeader::largest);
  std::string words(length, '\0');
  if (input.read_at(prefix, std::as_writable_bytes(std::span{words})) < length)
    format.bad("it ends within the header, which has ", length, " bytes");

  NpyHeader header = detail::NpyText{words, input.name()}.read();
  header.data_begin = prefix + length;
  Index expected = as_index(info(header.type).bits / 8);
  for (const Index extent : header.extents) {
    if (extent > 0 && expected > std::numeric_limits<Index>::max() / extent) format.bad("its extents multiply to more than 2^63 bytes");
    expected *= extent;
  }
  const std::uint64_t there = input.size() - header.data_begin;
  const char* remedy = "The file is damaged, or has several arrays: give each one a file of its own.";
  if (there < static_cast<std::uint64_t>(expected)) remedy = "The file is truncated: copy it again.";
  if (there != static_cast<std::uint64_t>(expected))
    throw FileError{text(input.name(), ": expected ", expected, " bytes of data after the header, found ", there, ". ", remedy)};
  return header;
}

PDP_INLINE void detail::check_npy_type(const Input& input, const NpyHeader& header, ElementType wanted) {
  if (header.type != wanted)
    throw FileError{text(input.name(), ": expected elements of type ", npy_name(wanted), ", found ", npy_name(header.type),
                         ". Read it as that type, or convert it with a.astype(numpy.", npy_name(wanted), ").")};
}

}  // namespace pdp::data
