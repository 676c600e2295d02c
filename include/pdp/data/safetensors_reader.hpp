#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "safetensors files need JSON for Modern C++ (Debian: nlohmann-json3-dev), and the CMake target pdp::safetensors"
#include <see the error above>
#endif
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <pdp/data/input.hpp>
#include <pdp/data/safetensors_events.hpp>
#include <pdp/data/safetensors_header.hpp>
#include <pdp/data/shown.hpp>

/// Reads the header of a safetensors file from its JSON. The JSON library takes seconds to compile. Include this header,
/// safetensors_writer.hpp and safetensors.hpp only in source files that read or write such files, not in other headers.
namespace pdp::data::detail {

/// Reads the header of a file into a SafeTensorsHeader. Throws FileError if it is invalid.
class HeaderReader {
 public:
  explicit HeaderReader(const Input& input) : input_{&input} {}

  SafeTensorsHeader read() const {
    SafeTensorsHeader header;
    {
      const std::string json = read_json();
      header.data_begin = length_bytes + json.size();
      HeaderEvents events{*input_, header};
      nlohmann::json::sax_parse(json, &events);
    }
    std::ranges::sort(header.tensors, {}, [](const TensorInfo& t) {
      return std::tuple<std::uint64_t, std::uint64_t, std::string_view>{t.begin, t.end, t.name};
    });
    sort_names(header);
    check_contiguous(header.tensors, input_->size() - header.data_begin);
    return header;
  }

 private:
  static constexpr std::uint64_t length_bytes = 8;

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... found) const {
    bad_header(*input_, found...);
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
    const std::size_t begin = json.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos || json[begin] != '{') bad("its header does not begin with '{'");
    if (json.find('\0') != std::string::npos) bad("there is a zero byte in its header");  // the parser would stop there
    return json;
  }

  void sort_names(SafeTensorsHeader& header) const {
    header.by_name.resize(header.tensors.size());
    std::iota(header.by_name.begin(), header.by_name.end(), std::uint32_t{0});
    const auto name_of = [&](std::uint32_t number) -> std::string_view { return header.tensors[number].name; };
    std::ranges::sort(header.by_name, {}, name_of);
    const auto twice = std::ranges::adjacent_find(header.by_name, {}, name_of);
    if (twice != header.by_name.end()) bad("the name '", shown(name_of(*twice)), "' occurs twice in its header");
  }

  void check_contiguous(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) const {
    std::uint64_t expected = 0;
    for (const TensorInfo& tensor : tensors) {
      if (tensor.begin != expected)
        bad("tensor '", shown(tensor.name), "' begins at ", tensor.begin, ", but the one before it ends at ", expected,
            " (overlap or hole)");
      expected = tensor.end;
    }
    if (expected != data_bytes)
      bad("its tensors need ", expected, " bytes, but ", data_bytes, " follow the header (truncated, or damaged)");
  }

  const Input* input_;
};

}  // namespace pdp::data::detail
