#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "safetensors files need JSON for Modern C++ (Debian: nlohmann-json3-dev), and the CMake target pdp::safetensors"
#include <see the error above>
#endif
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/data/safetensors_header.hpp>
#include <pdp/data/shown.hpp>

namespace pdp::data {

/// A row-major tensor to write. Borrows its values.
struct TensorToWrite {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<Index> shape;
  std::span<const std::byte> bytes;
};

/// Returns a tensor with these values, which it borrows.
template <Element T>
TensorToWrite tensor_to_write(std::string name, std::vector<Index> shape, std::span<const T> values) {
  return {std::move(name), *element_type_of<T>, std::move(shape), std::as_bytes(values)};
}

namespace detail {

inline void check_tensor(const TensorToWrite& tensor) {
  const std::uint64_t bytes_of_one = info(tensor.type).bits / 8;
  if (bytes_of_one == 0)
    throw ConfigError{text("tensor '", shown(tensor.name), "': expected elements of whole bytes, found type ", info(tensor.type).name,
                           ". Write the tensor with another type.")};
  if (tensor.shape.size() > SafeTensorsHeader::most_dimensions)
    throw ConfigError{text("tensor '", shown(tensor.name), "': expected at most ", SafeTensorsHeader::most_dimensions,
                           " dimensions, found ", tensor.shape.size(), ". Reshape it.")};
  std::uint64_t bytes = bytes_of_one;
  bool fits = true;
  for (const Index extent : tensor.shape) {
    fits = fits && extent >= 0 && (extent == 0 || bytes <= std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(extent));
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (!fits || bytes != tensor.bytes.size())
    throw ShapeError{text("tensor '", shown(tensor.name), "': its shape and element type need ", bytes, " bytes, found ",
                          tensor.bytes.size(), ". Give every element of the shape.")};
}

/// Returns the name as a JSON string. Throws ConfigError if it is not UTF-8.
inline std::string quoted(const std::string& name) {
  try {
    return nlohmann::json(name).dump();
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError{text("expected names of tensors and metadata in UTF-8, found '", shown(name), "' (", error.what(), "). Rename it.")};
  }
}

/// Returns the JSON of the header. The tensors' bytes follow each other in the order of the list. Throws ConfigError if two tensors have
/// the same name.
inline std::string header_json(const std::vector<const TensorToWrite*>& tensors, const Metadata& metadata) {
  const auto separator = [](const std::string& before) { return before.ends_with('{') || before.ends_with('[') ? "" : ","; };
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [name, value] : metadata) json += text(separator(json), quoted(name), ":", quoted(value));
    json += "}";
  }
  std::set<std::string_view> names{"__metadata__"};
  std::uint64_t offset = 0;
  for (const TensorToWrite* tensor : tensors) {
    if (!names.insert(tensor->name).second)
      throw ConfigError{
          text("tensor '", shown(tensor->name), "': another tensor already has this name, or it is reserved for metadata. Rename it.")};
    check_tensor(*tensor);
    json += text(separator(json), quoted(tensor->name), R"(:{"dtype":")", info(tensor->type).name, R"(","shape":[)");
    for (const Index extent : tensor->shape) json += text(separator(json), extent);
    const std::uint64_t end = offset + tensor->bytes.size();
    json += text("],\"data_offsets\":[", offset, ",", end, "]}");
    offset = end;
  }
  return json + "}";
}

/// Returns the bytes before the tensors: the length of the JSON and the JSON, padded with spaces so that the tensors begin at a multiple of
/// 8 bytes.
inline std::string header_bytes(std::string json) {
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > SafeTensorsHeader::largest)
    throw ConfigError{text("expected names of tensors and metadata that fit in a header of ", SafeTensorsHeader::largest,
                           " bytes, which the format allows, found ", json.size(), " bytes. Shorten them, or write several files.")};
  const std::uint64_t length = json.size();
  std::string bytes(sizeof length, '\0');
  std::ranges::copy(std::as_bytes(std::span{&length, 1}), std::as_writable_bytes(std::span{bytes}).begin());
  return bytes + json;
}

}  // namespace detail

/// Replaces `path` atomically with a file of these tensors (see ReplaceFile). Tensors with larger elements come first, so that each is
/// aligned in a mapped file.
///
/// Throws FileError if the file cannot be written, and ShapeError if the values do not fit the shape. Throws ConfigError if two tensors
/// have the same name, a name is not UTF-8, an element is not a whole number of bytes, or a limit of SafeTensorsHeader is exceeded.
inline void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors, const Metadata& metadata = {}) {
  if (tensors.size() > SafeTensorsHeader::most_tensors || metadata.size() > SafeTensorsHeader::most_metadata)
    throw ConfigError{text("expected at most ", SafeTensorsHeader::most_tensors, " tensors and ", SafeTensorsHeader::most_metadata,
                           " entries of metadata for a safetensors file, found ", tensors.size(), " and ", metadata.size(),
                           ". Write several files.")};
  std::vector<const TensorToWrite*> ordered;
  for (const TensorToWrite& tensor : tensors) ordered.push_back(&tensor);
  std::ranges::stable_sort(ordered, std::greater{}, [](const TensorToWrite* tensor) { return info(tensor->type).bits; });

  const std::string header = detail::header_bytes(detail::header_json(ordered, metadata));
  ReplaceFile file{path};
  file.write(std::as_bytes(std::span{header}));
  for (const TensorToWrite* tensor : ordered) file.write(tensor->bytes);
  file.commit();
}

}  // namespace pdp::data
