#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>

/// The contents of the header of a safetensors file.
namespace pdp::data {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian, and are read and written as they lie in memory");

/// The header's __metadata__: pairs of a name and a text.
using Metadata = std::map<std::string, std::string>;

/// The name, element type, shape and position of a tensor in a file.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::string unknown_type;  // name of the type in the file, if `type` is ElementType::unknown
  std::vector<Index> shape;  // empty for a scalar
  std::uint64_t begin = 0;   // bytes [begin, end), counted from the end of the header
  std::uint64_t end = 0;

  [[nodiscard]] std::string_view type_name() const { return type == ElementType::unknown ? unknown_type : info(type).name; }
  [[nodiscard]] Index elements() const {
    Index product = 1;
    for (const Index extent : shape) product *= extent;
    return product;
  }
};

/// The checked header of a safetensors file.
///
/// Accepts what the safetensors package accepts: every element type, JSON white space anywhere, further fields of a tensor, and
/// `"__metadata__": null`. A tensor of a type that pdp does not know cannot be read, but the others can. Rejects duplicate names, which the
/// format forbids, and headers beyond the limits below.
struct SafeTensorsHeader {
  static constexpr std::uint64_t largest = 100'000'000;   // bytes of JSON, by the format
  static constexpr std::size_t most_tensors = 1'000'000;  // a header of 100,000,000 bytes could describe twice as many
  static constexpr std::size_t most_metadata = 100'000;   // entries of __metadata__
  static constexpr std::size_t most_dimensions = 64;      // per tensor
  static constexpr std::size_t most_nested = 128;         // nesting depth of lists and objects in a skipped field

  std::vector<TensorInfo> tensors;     // in the order of their bytes, without overlaps or gaps
  std::vector<std::uint32_t> by_name;  // indices into `tensors`, in the order of the names
  Metadata metadata;
  std::uint64_t data_begin = 0;  // offset of the first tensor in the file

  /// Returns the tensor with this name, or nullptr.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const {
    const auto name_of = [&](std::uint32_t number) -> std::string_view { return tensors[number].name; };
    const auto place = std::ranges::lower_bound(by_name, name, {}, name_of);
    return place != by_name.end() && name_of(*place) == name ? &tensors[*place] : nullptr;
  }
};

namespace detail {

/// Throws the FileError for a file that does not follow the format.
template <class... Parts>
[[noreturn]] void bad_header(const Input& input, const Parts&... found) {
  throw FileError{text(input.name(), ": expected a safetensors file, found that ", found...,
                       ". Give a whole file, as pdp or the safetensors package writes it.")};
}

}  // namespace detail

}  // namespace pdp::data
