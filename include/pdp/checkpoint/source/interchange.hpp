#pragma once

/// Definitions for pdp/checkpoint/interchange.hpp; see pdp/core/separate_compilation.hpp.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/interchange.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/safetensors.hpp>

namespace pdp::checkpoint {

namespace detail {

constexpr std::string_view state_prefix = "optimizer.";

PDP_INLINE std::string exported_name(const StoredTensor& tensor) {
  return tensor.state.empty() ? tensor.name : text(state_prefix, tensor.name, '.', tensor.state);
}
/// Splits a name that exported_name() has made.
PDP_INLINE void read_exported_name(std::string_view name, StoredTensor& tensor) {
  tensor.name = name;
  const std::size_t dot = name.rfind('.');
  if (!name.starts_with(state_prefix) || dot < state_prefix.size()) return;
  tensor.name = name.substr(state_prefix.size(), dot - state_prefix.size());
  tensor.state = name.substr(dot + 1);
}

}  // namespace detail

PDP_INLINE void export_checkpoint(const std::filesystem::path& from, const std::filesystem::path& file) {
  const PieceReader reader{find_checkpoint(from)};
  reader.check_headers();
  std::vector<std::vector<std::byte>> values;
  std::vector<Destination> destinations;
  std::vector<data::TensorToWrite> written;
  values.reserve(reader.manifest().tensors.size());
  for (const StoredTensor& tensor : reader.manifest().tensors) {
    const auto shape = tensor.shape();
    const Block whole{0, 0, shape.front(), tensor.rows * tensor.cols / shape.front()};
    std::vector<std::byte>& bytes = values.emplace_back(as_size(whole.elements()) * tensor.bytes_of_element());
    destinations.push_back({destinations.size(), false, {}, {{whole, 0}}, [&bytes] { return std::span{bytes}; }, {}});
    written.push_back({detail::exported_name(tensor), data::element_type(tensor.type), shape, bytes});
  }
  fill(reader, destinations);
  const Position& at = reader.manifest().position;
  data::write_safetensors(file, written, {{"format", "pt"}, {"step", std::to_string(at.step - at.skipped)}});
}

PDP_INLINE std::filesystem::path import_checkpoint(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const data::SafeTensors from{file};
  std::vector<std::vector<std::byte>> values;
  std::vector<PartToWrite> parts;
  values.reserve(from.tensors().size());
  for (const data::TensorInfo& info : from.tensors()) {
    const bool is_double = info.type == data::ElementType::F64;
    if (!is_double && info.type != data::ElementType::F32) continue;
    if (info.shape.empty() || info.elements() == 0)
      throw FileError{text(file.string(), ": expected tensors with elements and dimensions, found '", data::detail::shown(info.name),
                           "' of shape ", shape_text(info.shape), ". Remove it from the file.")};
    StoredTensor tensor;
    tensor.type = is_double ? "F64" : "F32";
    tensor.rows = info.shape.front();
    tensor.cols = info.elements() / tensor.rows;
    tensor.is_vector = info.shape.size() == 1;
    if (info.shape.size() > 2) tensor.file_shape.assign(info.shape.begin(), info.shape.end());
    detail::read_exported_name(info.name, tensor);
    std::vector<std::byte>& bytes = values.emplace_back(info.end - info.begin);
    const auto read = [&]<class T>(T) {
      std::vector<T> numbers(as_size(info.elements()));
      from.read<T>(info.name, std::span<T>{numbers});
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
    };
    is_double ? read(double{}) : read(float{});
    parts.push_back({tensor, {0, 0, tensor.rows, tensor.cols}, bytes});
  }
  if (parts.empty()) throw FileError{text(file.string(), ": expected tensors of type F32 or F64, found none. Is it the right file?")};
  Position position;
  if (const auto step = from.metadata().find("step"); step != from.metadata().end()) {
    const std::string& digits = step->second;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), position.step);
    if (error != std::errc{} || end != digits.data() + digits.size() || position.step < 0)
      throw FileError{text(file.string(), ": expected a number of steps as \"step\" in the metadata, found ", in_quotes(digits), ".")};
  }
  const FolderLock lock{folder};
  NewCheckpoint made{lock, position.step};
  const Manifest own = write_pieces(made.folder() / name_of_file(0), parts);
  return made.publish(joined(position, {}, {own}));
}

}  // namespace pdp::checkpoint
