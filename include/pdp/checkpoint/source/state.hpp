#pragma once

/// Definitions for pdp/checkpoint/state.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::checkpoint {

namespace detail {

/// Copies the common elements of a piece and of a block. Both lie row by row: the piece at `from`, the block at `to`.
PDP_INLINE void copy_common(const Block& piece, std::span<const std::byte> from, const Block& block, std::span<std::byte> to,
                            std::size_t bytes_of_element) {
  const Block both = common(piece, block);
  if (both.is_empty()) return;
  const auto place = [&](const Block& in, Index row) { return as_size((row - in.row) * in.cols + both.col - in.col) * bytes_of_element; };
  if (both.cols == piece.cols && both.cols == block.cols) {
    std::byte* const first = to.data() + place(block, both.row);
    if (first != from.data()) std::memcpy(first, from.data() + place(piece, both.row), as_size(both.elements()) * bytes_of_element);
    return;
  }
  for (Index row = both.row; row < both.row + both.rows; ++row)
    std::memcpy(to.data() + place(block, row), from.data() + place(piece, row), as_size(both.cols) * bytes_of_element);
}

/// Copies the elements of a piece that a block of the same tensor has, which lies in memory in another way.
PDP_INLINE void copy_elements(const StoredTensor& stored, const Block& piece, std::span<const std::byte> from, const StoredTensor& held,
                              const Block& block, std::span<std::byte> to) {
  const std::size_t bytes = stored.bytes_of_element();
  for (Index at = 0; at < piece.elements(); ++at) {
    const auto [row, col] = held.place_of(stored.file_element(piece.row + at / piece.cols, piece.col + at % piece.cols));
    if (common({row, col, 1, 1}, block).is_empty()) continue;
    std::memcpy(to.data() + as_size((row - block.row) * block.cols + col - block.col) * bytes, from.data() + as_size(at) * bytes, bytes);
  }
}

/// Returns the blocks of the stored tensor that may hold the elements of a block.
PDP_INLINE Block stored_block(const StoredTensor& stored, const StoredTensor& held, const Block& block) {
  if (stored.order != held.order) return {0, 0, stored.rows, stored.cols};
  return stored.transposed == held.transposed ? block : Block{block.col, block.row, block.cols, block.rows};
}

}  // namespace detail

PDP_INLINE std::size_t number_of(const std::vector<StoredTensor>& tensors, std::string_view name, std::string_view state) {
  const auto found = std::ranges::find_if(tensors, [&](const StoredTensor& each) { return each.name == name && each.state == state; });
  return as_size(found - tensors.begin());
}

PDP_INLINE void check_tensors(const std::vector<StoredTensor>& found, const std::vector<StoredTensor>& expected, std::string_view source,
                              Needs needs) {
  const bool all = needs == Needs::all;
  const char* const reader = all ? "training" : "model";
  const auto refuse = [&](const auto&... why) {
    throw FileError{text(source, " is a checkpoint of another model", all ? ", optimizer or precision: " : " or precision: ", why...,
                         ". Use the checkpoint of this ", reader, ".")};
  };
  for (const StoredTensor& each : expected) {
    const std::size_t number = number_of(found, each.name, each.state);
    if (number == found.size()) refuse("it has no ", each.words(), ", which this ", reader, " has");
    const StoredTensor& other = found[number];
    if (other.type != each.type) refuse(each.words(), " has elements of type ", other.type, " there, but ", each.type, " here");
    // A file of an older version has no shape of more than two dimensions.
    const bool has_shape = !other.file_shape.empty() || each.file_shape.empty();
    if (has_shape ? other.shape() != each.shape() : other.rows != each.rows || other.cols != each.cols)
      refuse(each.words(), " has the shape ", shape_text(other.shape()), " there, but ", shape_text(each.shape()), " here");
  }
  for (const StoredTensor& each : found)
    if ((all || each.state.empty()) && number_of(expected, each.name, each.state) == expected.size())
      refuse("it has ", each.words(), " of shape ", shape_text(each.shape()), ", which this ", reader, " does not have");
}

PDP_INLINE void fill(const PieceReader& from, const std::vector<Destination>& destinations) {
  std::map<std::size_t, std::vector<const Destination*>> by_tensor;
  for (const Destination& each : destinations) by_tensor[each.tensor].push_back(&each);
  for (const auto& [tensor, all] : by_tensor) {
    const StoredTensor& stored = from.manifest().tensors[tensor];
    struct Part {
      Block block;
      std::span<std::byte> memory;
      StoredTensor held;  // the tensor as it lies in memory
      bool is_alike;      // it lies so in the checkpoint
    };
    std::vector<Block> wanted;
    std::vector<Part> parts;
    for (const Destination* each : all) {
      const std::span<std::byte> memory = each->begin();
      StoredTensor held = stored;
      held.order = each->order;
      held.transposed = each->transposed && !stored.is_vector;
      if (held.transposed != stored.transposed) std::swap(held.rows, held.cols);
      const bool is_alike = held.transposed == stored.transposed && held.order == stored.order;
      for (const auto& [block, at] : each->blocks) {
        wanted.push_back(detail::stored_block(stored, held, block));
        parts.push_back({block, memory.subspan(as_size(at) * stored.bytes_of_element()), held, is_alike});
      }
    }
    // A piece of whole rows of a block is read to its place there.
    const auto place = [&](const Block& piece) {
      for (const Part& part : parts)
        if (part.is_alike && piece.col == part.block.col && piece.cols == part.block.cols && common(piece, part.block) == piece)
          return part.memory.subspan(as_size((piece.row - part.block.row) * part.block.cols) * stored.bytes_of_element(),
                                     as_size(piece.elements()) * stored.bytes_of_element());
      return std::span<std::byte>{};
    };
    from.read(tensor, wanted, place, [&](const Block& piece, std::span<const std::byte> bytes) {
      for (const Part& part : parts) {
        if (part.is_alike)
          detail::copy_common(piece, bytes, part.block, part.memory, stored.bytes_of_element());
        else
          detail::copy_elements(stored, piece, bytes, part.held, part.block, part.memory);
      }
    });
    for (const Destination* each : all)
      if (each->end) each->end();
  }
}

PDP_INLINE std::vector<StoredTensor> tensors_of(const std::vector<nn::LayerParameter>& of_model, const std::vector<std::string>& names,
                                                const char* type) {
  std::vector<StoredTensor> tensors;
  for (const nn::LayerParameter& each : of_model) {
    if (each.parameter.is_copy) continue;
    tensors.push_back(stored_tensor(each.parameter, "", type));
    for (const std::string& name : names) tensors.push_back(stored_tensor(each.parameter, name, type));
  }
  return tensors;
}

}  // namespace pdp::checkpoint
