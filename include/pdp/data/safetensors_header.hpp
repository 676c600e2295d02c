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

/// What the header of a safetensors file says.
namespace pdp::data {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian, and are read and written as they lie in memory");

/// Text about the tensors: the header's __metadata__.
using Metadata = std::map<std::string, std::string>;

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::string unknown_type;  // the file's name for the type, if that is ElementType::unknown
  std::vector<Index> shape;  // empty for a single number
  std::uint64_t begin = 0;   // bytes [begin, end) of what follows the header
  std::uint64_t end = 0;

  [[nodiscard]] std::string_view type_name() const { return type == ElementType::unknown ? unknown_type : info(type).name; }
  [[nodiscard]] Index elements() const {
    Index product = 1;
    for (const Index extent : shape) product *= extent;
    return product;
  }
};

/// The checked header of a file.
///
/// Accepts what the safetensors package accepts: every element type, also those of later versions (such a tensor cannot be read, the others
/// can), JSON white space anywhere, further fields of a tensor, and `"__metadata__": null`. Refuses a name that occurs twice, which the
/// format forbids, and whatever goes beyond the limits below.
struct SafeTensorsHeader {
  static constexpr std::uint64_t largest = 100'000'000;   // bytes of JSON, by the format
  static constexpr std::size_t most_tensors = 1'000'000;  // 100,000,000 bytes have room for twice as many
  static constexpr std::size_t most_metadata = 100'000;   // entries of __metadata__
  static constexpr std::size_t most_dimensions = 64;      // of a tensor
  static constexpr std::size_t most_nested = 128;         // lists and objects within a field that is skipped

  std::vector<TensorInfo> tensors;     // in the order of their bytes, without overlap or hole
  std::vector<std::uint32_t> by_name;  // numbers of the tensors, in the order of their names
  Metadata metadata;
  std::uint64_t data_begin = 0;  // offset of the tensors in the file

  /// Returns the tensor of that name, or null.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const {
    const auto name_of = [&](std::uint32_t number) -> std::string_view { return tensors[number].name; };
    const auto place = std::ranges::lower_bound(by_name, name, {}, name_of);
    return place != by_name.end() && name_of(*place) == name ? &tensors[*place] : nullptr;
  }
};

namespace detail {

/// Throws the FileError of a file that is not in the format.
template <class... Parts>
[[noreturn]] void bad_header(const Input& input, const Parts&... found) {
  throw FileError{text(input.name(), ": expected a safetensors file, found that ", found...,
                       ". Give a whole file, as pdp or the safetensors package writes it.")};
}

}  // namespace detail

}  // namespace pdp::data
