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
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::checkpoint {

namespace detail {

/// Returns the shape of a tensor as PyTorch would print it.
PDP_INLINE std::string shape_of(const StoredTensor& tensor) {
  if (tensor.is_vector) return text('[', tensor.rows, ']');
  return tensor.transposed ? text('[', tensor.cols, ", ", tensor.rows, ']') : text('[', tensor.rows, ", ", tensor.cols, ']');
}

/// Copies the common elements of a piece and of a block. Both lie row by row: the piece at `from`, the block at `to`.
PDP_INLINE void copy_common(const Block& piece, std::span<const std::byte> from, const Block& block, std::span<std::byte> to,
                            std::size_t bytes_of_element) {
  const Block both = common(piece, block);
  if (both.is_empty()) return;
  const auto place = [&](const Block& in, Index row) { return as_size((row - in.row) * in.cols + both.col - in.col) * bytes_of_element; };
  if (both.cols == piece.cols && both.cols == block.cols) {
    std::memcpy(to.data() + place(block, both.row), from.data() + place(piece, both.row), as_size(both.elements()) * bytes_of_element);
    return;
  }
  for (Index row = both.row; row < both.row + both.rows; ++row)
    std::memcpy(to.data() + place(block, row), from.data() + place(piece, row), as_size(both.cols) * bytes_of_element);
}

}  // namespace detail

PDP_INLINE std::size_t number_of(const std::vector<StoredTensor>& tensors, std::string_view name, std::string_view state) {
  const auto found = std::ranges::find_if(tensors, [&](const StoredTensor& each) { return each.name == name && each.state == state; });
  return as_size(found - tensors.begin());
}

PDP_INLINE void check_tensors(const std::vector<StoredTensor>& found, const std::vector<StoredTensor>& expected, std::string_view source) {
  const auto refuse = [&](const auto&... why) {
    throw FileError{
        text(source, " is a checkpoint of another model, optimizer or precision: ", why..., ". Use the checkpoint of this training.")};
  };
  for (const StoredTensor& each : expected) {
    const std::size_t number = number_of(found, each.name, each.state);
    if (number == found.size()) refuse("it has no ", each.words(), ", which this training has");
    const StoredTensor& other = found[number];
    if (other.type != each.type) refuse(each.words(), " has elements of type ", other.type, " there, but ", each.type, " here");
    if (other != each) refuse(each.words(), " has the shape ", detail::shape_of(other), " there, but ", detail::shape_of(each), " here");
  }
  for (const StoredTensor& each : found)
    if (number_of(expected, each.name, each.state) == expected.size())
      refuse("it has ", each.words(), " of shape ", detail::shape_of(each), ", which this training does not have");
}

PDP_INLINE void fill(const PieceReader& from, const std::vector<Destination>& destinations) {
  std::map<std::size_t, std::vector<const Destination*>> by_tensor;
  for (const Destination& each : destinations) by_tensor[each.tensor].push_back(&each);
  for (const auto& [tensor, all] : by_tensor) {
    const std::size_t bytes_of_element = from.manifest().tensors[tensor].bytes_of_element();
    std::vector<Block> wanted;
    std::vector<std::pair<Block, std::span<std::byte>>> places;
    for (const Destination* each : all) {
      const std::span<std::byte> memory = each->begin();
      for (const auto& [block, at] : each->blocks) {
        wanted.push_back(block);
        places.emplace_back(block, memory.subspan(as_size(at) * bytes_of_element));
      }
    }
    from.read(tensor, wanted, [&](const Block& piece, std::span<const std::byte> bytes) {
      for (const auto& [block, memory] : places) detail::copy_common(piece, bytes, block, memory, bytes_of_element);
    });
    for (const Destination* each : all)
      if (each->end) each->end();
  }
}

}  // namespace pdp::checkpoint
