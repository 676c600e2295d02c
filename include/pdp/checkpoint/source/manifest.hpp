#pragma once

/// Definitions for pdp/checkpoint/manifest.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#include <pdp/checkpoint/source/manifest_reader.hpp>
#endif

namespace pdp::checkpoint {

PDP_INLINE std::string StoredTensor::words() const { return state.empty() ? name : text(state, " of ", name); }

PDP_INLINE std::vector<Index> StoredTensor::shape() const {
  if (is_vector) return {rows};
  if (!file_shape.empty()) return file_shape;
  return transposed ? std::vector<Index>{cols, rows} : std::vector<Index>{rows, cols};
}

PDP_INLINE Index StoredTensor::file_element(Index row, Index col) const {
  if (is_vector) return order(row);
  return transposed ? order(col) * rows + row : row * cols + order(col);
}
PDP_INLINE std::pair<Index, Index> StoredTensor::place_of(Index file_element) const {
  if (is_vector) return {order.in_memory(file_element), 0};
  if (transposed) return {file_element % rows, order.in_memory(file_element / rows)};
  return {file_element / cols, order.in_memory(file_element % cols)};
}

PDP_INLINE StoredTensor stored_tensor(const nn::Parameter& parameter, std::string_view state, std::string_view type) {
  const Block whole = whole_of(parameter);
  StoredTensor tensor{parameter.full_name(), std::string{state},   std::string{type}, whole.rows, whole.cols,
                      parameter.cols == 0,   parameter.transposed, parameter.order};
  if (parameter.row_shape.rank() > 0) tensor.file_shape = parameter.file_shape();
  return tensor;
}

#if __has_include(<nlohmann/json.hpp>)

PDP_INLINE std::string encode(const Manifest& manifest) {
  using detail::Json;
  const Position& at = manifest.position;
  const bool has_order = std::ranges::any_of(manifest.tensors, [](const StoredTensor& each) { return each.order.groups > 0; });
  Json all{{"format", detail::format_name}, {"version", has_order ? Manifest::newest : 1}, {"ranks", manifest.ranks}};
  all["position"] = {{"step", at.step},
                     {"epoch", at.epoch},
                     {"batch", at.batch},
                     {"seed", at.seed},
                     {"shuffle", at.shuffle},
                     {"samples", at.samples},
                     {"global_batch", at.global_batch},
                     {"skipped", at.skipped},
                     {"finite", at.finite},
                     {"loss_scale", detail::json_of(at.loss_scale)},
                     {"epoch_loss", detail::json_of(at.epoch_loss)},
                     {"epoch_correct", detail::json_of(at.epoch_correct)},
                     {"epoch_rows", detail::json_of(at.epoch_rows)},
                     {"rate_factor", detail::json_of(at.rate_factor)}};
  if (!at.parts.empty()) all["position"]["parts"] = at.parts;
  if (at.epoch_weight != 0) all["position"]["epoch_weight"] = detail::json_of(at.epoch_weight);
  all["values"] = Json::object();
  for (const auto& [name, value] : manifest.values) {
    Json& place = all["values"][name];
    if (const auto* number = std::get_if<double>(&value))
      place = detail::json_of(*number);
    else
      std::visit([&](const auto& each) { place = each; }, value);
  }
  for (const char* name : {"tensors", "files", "pieces"}) all[name] = Json::array();
  for (const StoredTensor& each : manifest.tensors) {
    all["tensors"].push_back({{"name", each.name},
                              {"state", each.state},
                              {"type", each.type},
                              {"rows", each.rows},
                              {"cols", each.cols},
                              {"vector", each.is_vector},
                              {"transposed", each.transposed}});
    Json& made = all["tensors"].back();
    if (each.order.groups > 0) made["order"] = {each.order.groups, each.order.leading, each.order.width};
    if (!each.file_shape.empty()) made["shape"] = each.file_shape;
  }
  for (const StoredFile& each : manifest.files)
    all["files"].push_back({{"name", each.name}, {"bytes", each.bytes}, {"header", each.header}, {"hash", text_of(each.header_hash)}});
  for (const StoredPiece& each : manifest.pieces) {
    all["pieces"].push_back({{"tensor", each.tensor},
                             {"file", each.file},
                             {"row", each.block.row},
                             {"col", each.block.col},
                             {"rows", each.block.rows},
                             {"cols", each.block.cols},
                             {"begin", each.begin},
                             {"hash", text_of(each.hash)}});
  }
  all["hash"] = std::string(32, '0');
  try {
    std::string words = all.dump() + "\n";
    const std::string hash = text_of(hash_of(std::as_bytes(std::span{words})));
    return words.replace(words.rfind(detail::hash_key) + detail::hash_key.size(), hash.size(), hash);
  } catch (const Json::exception& error) {  // of type 316: a text is not UTF-8
    throw ConfigError{text("expected names and values of a checkpoint in UTF-8 (", error.what(), "). Change them.")};
  }
}

PDP_INLINE Manifest decode(std::string_view words, std::string_view source, bool of_one_file) {
  return detail::ManifestReader{source}.read(words, of_one_file);
}

PDP_INLINE std::string safetensors_header(const Manifest& manifest) {
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pdp checkpoint, see manifest.json"}}}};
  std::uint64_t begin = 0;
  for (const StoredPiece& piece : manifest.pieces) {
    const StoredTensor& tensor = manifest.tensors[piece.tensor];
    const Block& block = piece.block;
    const std::string name = text(tensor.name, tensor.state.empty() ? "" : " ", tensor.state, " [", block.row, ':', block.row + block.rows,
                                  ", ", block.col, ':', block.col + block.cols, ']');
    const std::uint64_t end = begin + manifest.bytes_of(piece);
    header[name] = {{"dtype", tensor.type}, {"shape", {block.rows, block.cols}}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = json.size();
  std::string bytes(sizeof length, '\0');
  std::ranges::copy(std::as_bytes(std::span{&length, 1}), std::as_writable_bytes(std::span{bytes}).begin());
  return bytes + json;
}

#else

[[noreturn]] PDP_INLINE void json_is_missing() {
  throw ConfigError{
      "checkpoints need JSON for Modern C++ (nlohmann-json3-dev), which was not there when this program was compiled; install it and "
      "compile pdp again"};
}
PDP_INLINE std::string encode(const Manifest&) { json_is_missing(); }
PDP_INLINE Manifest decode(std::string_view, std::string_view, bool) { json_is_missing(); }
PDP_INLINE std::string safetensors_header(const Manifest&) { json_is_missing(); }

#endif

}  // namespace pdp::checkpoint
