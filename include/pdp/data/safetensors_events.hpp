#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/safetensors_header.hpp>
#include <pdp/data/shown.hpp>

namespace pdp::data::detail {

/// Event handler of the JSON parser (SAX) that collects tensors and metadata. It keeps nothing else, so time is linear in the size of the
/// header, and memory a small multiple of it.
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
  bool binary(const std::vector<std::uint8_t>&) { return true; }  // JSON has no binary values

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

  /// Handles a value that is neither an object nor a list, and that is not expected here. Throws FileError unless it belongs to a skipped
  /// field.
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

  /// Throws FileError unless `value` belongs to a skipped field.
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
      // The size of an element is unknown, but at least one bit. This check limits the memory of a reader that allocates all elements to a
      // multiple of the size of the file.
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
  std::string name_;   // name of the current tensor
  std::string entry_;  // name of the current metadata entry
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

}  // namespace pdp::data::detail
