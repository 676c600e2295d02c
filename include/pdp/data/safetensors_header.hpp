#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/shown.hpp>

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

/// Collects tensors and metadata while the JSON is parsed: takes the parser's events and keeps nothing else, so that time is linear in the
/// header and memory a small multiple of it.
class HeaderEvents {
 public:
  HeaderEvents(const Input& input, SafeTensorsHeader& header) : input_{&input}, header_{&header} {}

  bool null() {
    if (place_ != Place::header || !is_metadata_) return scalar("null");
    begin_metadata();
    return true;
  }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return scalar(std::to_string(value)); }
  bool number_float(double, const std::string& digits) { return scalar(shown(digits)); }
  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::shape)
      add_extent(value);
    else if (place_ == Place::offsets)
      add_offset(value);
    else
      scalar(std::to_string(value));
    return true;
  }
  bool string(const std::string& value) {
    if (place_ == Place::metadata)
      add_metadata(value);
    else if (place_ == Place::tensor && field_ == Field::dtype)
      set_type(value);
    else
      scalar(text('"', shown(value), '"'));
    return true;
  }
  bool binary(const std::vector<std::uint8_t>&) { return true; }  // JSON has none

  bool key(const std::string& name) {
    if (place_ == Place::header) {
      is_metadata_ = name == "__metadata__";
      name_ = name;
    } else if (place_ == Place::metadata) {
      entry_ = name;
    } else if (place_ == Place::tensor) {
      begin_field(name);
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header && is_metadata_) {
      begin_metadata();
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      begin_tensor();
    } else {
      begin_skipped("an object");
    }
    return true;
  }
  bool end_object() {
    if (place_ == Place::tensor) end_tensor();
    if (place_ == Place::skipped)
      end_skipped();
    else
      place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::tensor && field_ == Field::shape)
      place_ = Place::shape;
    else if (place_ == Place::tensor && field_ == Field::offsets)
      place_ = Place::offsets;
    else
      begin_skipped("a list");
    return true;
  }
  bool end_array() {
    if (place_ == Place::skipped) {
      end_skipped();
      return true;
    }
    if (place_ == Place::offsets && offsets_ != 2) bad("tensor '", shown(name_), "' has ", offsets_, " data_offsets, not 2");
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const std::exception& error) {
    bad("its header is not JSON (", shown(error.what()), ")");
  }

 private:
  enum class Place : std::uint8_t { outside, header, metadata, tensor, shape, offsets, skipped };
  enum class Field : std::uint8_t { dtype, shape, offsets, other };

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... found) const {
    bad_header(*input_, found...);
  }

  [[noreturn]] void not_described() const { bad("tensor '", shown(name_), "' is not described by dtype, shape and data_offsets"); }

  /// A value that is neither an object nor a list, at a place that allows none of its kind unless it is skipped.
  bool scalar(std::string_view value) {
    switch (place_) {
      case Place::skipped:
        return true;
      case Place::shape:
      case Place::offsets:
        bad("the shape or data_offsets of tensor '", shown(name_), "' hold ", value, ", which is not a count");
      default:
        refuse(value);
    }
    return true;
  }

  /// Throws unless `value` belongs to a field that is skipped.
  void refuse(std::string_view value) const {
    if (place_ == Place::metadata) bad("__metadata__ holds ", value, " at '", shown(entry_), "', which is not text");
    if (place_ == Place::header && is_metadata_) bad("__metadata__ is not an object");
    if (place_ != Place::tensor) not_described();
    if (field_ == Field::dtype) bad("tensor '", shown(name_), "' has ", value, " as its dtype, which is not text");
    if (field_ != Field::other) bad("the shape or data_offsets of tensor '", shown(name_), "' are ", value, ", which is not a list");
  }

  void begin_skipped(std::string_view value) {
    if (place_ == Place::shape || place_ == Place::offsets) scalar(value);
    if (place_ != Place::skipped) refuse(value);
    place_ = Place::skipped;
    if (++nested_ > SafeTensorsHeader::most_nested) bad("its header is nested too deep");
  }
  void end_skipped() {
    if (--nested_ == 0) place_ = Place::tensor;
  }

  void begin_metadata() {
    if (std::exchange(has_metadata_, true)) bad("the name '__metadata__' occurs twice in its header");
  }

  void add_metadata(const std::string& value) {
    if (header_->metadata.size() == SafeTensorsHeader::most_metadata)
      bad("__metadata__ has more than ", SafeTensorsHeader::most_metadata, " entries");
    if (!header_->metadata.emplace(entry_, value).second) bad("the name '", shown(entry_), "' occurs twice in __metadata__");
  }

  void begin_tensor() {
    if (header_->tensors.size() == SafeTensorsHeader::most_tensors) bad("it has more than ", SafeTensorsHeader::most_tensors, " tensors");
    header_->tensors.emplace_back().name = name_;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
    place_ = Place::tensor;
  }

  void begin_field(std::string_view name) {
    const auto once = [&](bool& has, Field field) {
      if (std::exchange(has, true)) bad("tensor '", shown(name_), "' has ", name, " twice");
      field_ = field;
    };
    if (name == "dtype")
      once(has_dtype_, Field::dtype);
    else if (name == "shape")
      once(has_shape_, Field::shape);
    else if (name == "data_offsets")
      once(has_offsets_, Field::offsets);
    else
      field_ = Field::other;
  }

  void set_type(const std::string& name) {
    TensorInfo& tensor = header_->tensors.back();
    tensor.type = element_type(name);
    if (tensor.type == ElementType::unknown) tensor.unknown_type = name;
  }

  void add_extent(std::uint64_t extent) {
    TensorInfo& tensor = header_->tensors.back();
    if (tensor.shape.size() == SafeTensorsHeader::most_dimensions)
      bad("tensor '", shown(name_), "' has more than ", SafeTensorsHeader::most_dimensions, " dimensions");
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) too_large();
    tensor.shape.push_back(as_index(extent));
  }

  void add_offset(std::uint64_t offset) {
    TensorInfo& tensor = header_->tensors.back();
    if (offsets_ < 2) (offsets_ == 0 ? tensor.begin : tensor.end) = offset;
    ++offsets_;
  }

  [[noreturn]] void too_large() const {
    bad("the shape of tensor '", shown(name_), "' multiplies to more than 2^63 elements or 2^64 bits");
  }

  void end_tensor() const {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) not_described();
    const TensorInfo& tensor = header_->tensors.back();
    Index elements = 1;
    for (const Index extent : tensor.shape)
      if (__builtin_mul_overflow(elements, extent, &elements)) too_large();
    if (tensor.begin > tensor.end) mismatch(tensor, "");
    if (tensor.type == ElementType::unknown) {
      // The size of an element is not known, but is a bit at least: so a reader that takes memory for the elements takes a multiple of the
      // file.
      if (static_cast<std::uint64_t>(elements) / 8 > tensor.end - tensor.begin)
        mismatch(tensor, text(", but its shape has ", elements, " elements"));
      return;
    }
    std::uint64_t bits = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements), std::uint64_t{info(tensor.type).bits}, &bits)) too_large();
    if (bits % 8 != 0) bad("tensor '", shown(name_), "' of type ", tensor.type_name(), " needs ", bits, " bits, which are not whole bytes");
    if (tensor.end - tensor.begin != bits / 8) mismatch(tensor, text(", but its shape and dtype need ", bits / 8, " bytes"));
  }

  [[noreturn]] void mismatch(const TensorInfo& tensor, const std::string& needed) const {
    bad("the data_offsets of tensor '", shown(name_), "' are ", tensor.begin, " and ", tensor.end, needed);
  }

  const Input* input_;
  SafeTensorsHeader* header_;
  std::string name_;   // of the tensor
  std::string entry_;  // of the metadata
  std::size_t nested_ = 0;
  std::size_t offsets_ = 0;
  Place place_ = Place::outside;
  Field field_ = Field::other;
  bool is_metadata_ = false;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

/// Turns the parts of a header to a SafeTensorsHeader, or throws FileError.
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
    if (json.find('\0') != std::string::npos) bad("there is a zero byte in its header");  // the parser would take it for the end
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

}  // namespace detail

}  // namespace pdp::data
