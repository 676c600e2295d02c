#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>

/// The header of a safetensors file, from its JSON. The JSON library takes seconds to compile: include this, safetensors_writer.hpp and
/// safetensors.hpp in the source files that read or write such files, and not in other headers.
namespace pdp::data {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian, and are read and written as they lie in memory");

/// Text about the tensors: the header's __metadata__.
using Metadata = std::map<std::string, std::string>;

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<Index> shape;  // empty for a single number
  std::uint64_t begin = 0;   // bytes [begin, end) of what follows the header
  std::uint64_t end = 0;

  [[nodiscard]] Index elements() const { return static_cast<Index>((end - begin) / info(type).bytes); }
};

/// What the header of a file says, once all of it is checked.
struct SafeTensorsHeader {
  static constexpr std::uint64_t largest = 100'000'000;  // bytes of JSON, by the format

  std::vector<TensorInfo> tensors;  // in the order of their bytes, without overlap or hole
  Metadata metadata;
  std::uint64_t data_begin = 0;  // offset of the tensors in the file
};

namespace detail {

/// A name of a file's own, fit for a message however long it is and whatever it holds.
inline std::string shown(std::string_view name) {
  constexpr std::size_t most = 80;
  std::string fit{name.substr(0, most)};
  std::ranges::replace_if(
      fit, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return name.size() > most ? fit + "..." : fit;
}

/// Turns the parts of a header to a SafeTensorsHeader, or throws FileError.
class HeaderReader {
 public:
  explicit HeaderReader(const Input& input) : input_{&input} {}

  SafeTensorsHeader read() const {
    const std::string json = read_json();
    SafeTensorsHeader header;
    header.data_begin = length_bytes + json.size();
    const auto document = parse(json);
    for (const auto& [name, value] : document.items()) {
      if (name == "__metadata__")
        header.metadata = metadata(value);
      else
        header.tensors.push_back(tensor(name, value));
    }
    std::ranges::sort(header.tensors, {}, [](const TensorInfo& t) { return std::pair{t.begin, t.end}; });
    check_contiguous(header.tensors, input_->size() - header.data_begin);
    return header;
  }

 private:
  using Json = nlohmann::json;
  static constexpr std::uint64_t length_bytes = 8;

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... found) const {
    throw FileError{text(input_->name(), ": expected a safetensors file, found that ", found...,
                         ". Give a whole file, as pdp or the safetensors package writes it.")};
  }

  std::string read_json() const {
    std::uint64_t length = 0;
    const auto bytes = std::as_writable_bytes(std::span{&length, 1});
    if (input_->read_at(0, bytes) < bytes.size()) bad("it has ", input_->size(), " bytes, fewer than the 8 of the header's length");
    if (length > SafeTensorsHeader::largest) bad("its header would be of ", length, " bytes, more than the 100 MB that the format allows");
    if (length > input_->size() - length_bytes)
      bad("its header would be of ", length, " bytes, but only ", input_->size() - length_bytes, " follow");
    std::string json(length, '\0');
    input_->read_at(length_bytes, std::as_writable_bytes(std::span{json}));
    if (!json.starts_with('{')) bad("its header does not begin with '{'");
    if (json.find('\0') != std::string::npos) bad("there is a zero byte in its header");  // the parser would take it for the end
    return json;
  }

  /// Refuses a name that is there twice, of which the parser would keep one, and nesting that no header has.
  Json parse(const std::string& json) const {
    std::array<std::set<std::string>, 2> names;  // of the header, and of the object in it that is open
    const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
      const auto level = static_cast<std::size_t>(depth);
      if (event == Json::parse_event_t::object_start) {
        if (level > 1) bad("its header is nested too deep");
        names[level].clear();
      } else if (event == Json::parse_event_t::array_start) {
        if (level > 2) bad("its header is nested too deep");
      } else if (event == Json::parse_event_t::key && !names[level - 1].insert(value.get<std::string>()).second) {
        bad("the name '", shown(value.get<std::string>()), "' is twice in its header");
      }
      return true;
    };
    try {
      return Json::parse(json, check);
    } catch (const Json::exception& error) {
      bad("its header is not JSON (", shown(error.what()), ")");
    }
  }

  Metadata metadata(const Json& value) const {
    if (!value.is_object()) bad("__metadata__ is not an object");
    Metadata metadata;
    for (const auto& [name, entry] : value.items()) {
      if (!entry.is_string()) bad("__metadata__ holds something else than text at '", shown(name), "'");
      metadata.emplace(name, entry.get<std::string>());
    }
    return metadata;
  }

  TensorInfo tensor(const std::string& name, const Json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      bad("tensor '", shown(name), "' is not described by dtype, shape and data_offsets");
    const Json& dtype = value["dtype"];
    const auto type = element_type(dtype.is_string() ? dtype.get_ref<const std::string&>() : "");
    if (!type)
      bad("tensor '", shown(name), "' has the dtype ", shown(dtype.dump()), ", none of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL");

    TensorInfo tensor{name, *type, {}, 0, 0};
    std::uint64_t bytes = info(*type).bytes;
    for (const Json& extent : array(name, value["shape"])) {
      const std::uint64_t count = number(name, extent);
      constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
      if (count > most || (count > 0 && bytes > most / count))
        bad("the shape of tensor '", shown(name), "' multiplies to more than 2^63 bytes");
      bytes *= count;
      tensor.shape.push_back(static_cast<Index>(count));
    }
    const Json& offsets = array(name, value["data_offsets"]);
    if (offsets.size() != 2) bad("tensor '", shown(name), "' has ", offsets.size(), " data_offsets, not 2");
    tensor.begin = number(name, offsets[0]);
    tensor.end = number(name, offsets[1]);
    if (tensor.begin > tensor.end || tensor.end - tensor.begin != bytes)
      bad("the data_offsets of tensor '", shown(name), "' are ", tensor.begin, " and ", tensor.end, ", where its shape and dtype need ",
          bytes, " bytes");
    return tensor;
  }

  const Json& array(const std::string& name, const Json& value) const {
    if (!value.is_array()) bad("the shape or data_offsets of tensor '", shown(name), "' are no list");
    return value;
  }

  std::uint64_t number(const std::string& name, const Json& value) const {
    if (!value.is_number_unsigned())
      bad("the shape or data_offsets of tensor '", shown(name), "' hold ", shown(value.dump()), ", which is no count");
    return value.get<std::uint64_t>();
  }

  void check_contiguous(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) const {
    std::uint64_t expected = 0;
    for (const TensorInfo& tensor : tensors) {
      if (tensor.begin != expected)
        bad("tensor '", shown(tensor.name), "' begins at ", tensor.begin, " where the one before it ends at ", expected,
            " (overlap or hole)");
      expected = tensor.end;
    }
    if (expected != data_bytes)
      bad("its tensors need ", expected, " bytes, but ", data_bytes, " follow the header (truncated, or damaged)");
  }

  const Input* input_;
};

}  // namespace detail

}  // namespace pdp::data
