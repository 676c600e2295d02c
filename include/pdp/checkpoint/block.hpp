#pragma once

#include <algorithm>

#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::checkpoint {

/// Rows [row, row + rows) and columns [col, col + cols) of a tensor, as pdp has it in memory: row by row. A vector has one column.
struct Block {
  Index row = 0, col = 0;
  Index rows = 0, cols = 0;

  [[nodiscard]] constexpr Index elements() const { return rows * cols; }
  [[nodiscard]] constexpr bool is_empty() const { return rows <= 0 || cols <= 0; }
  friend constexpr bool operator==(const Block&, const Block&) = default;
};

/// Returns the common part of two blocks of a tensor. It may be empty.
constexpr Block common(const Block& a, const Block& b) {
  const Index row = std::max(a.row, b.row), col = std::max(a.col, b.col);
  return {row, col, std::min(a.row + a.rows, b.row + b.rows) - row, std::min(a.col + a.cols, b.col + b.cols) - col};
}

/// Returns the whole tensor that a parameter is, or is a part of.
constexpr Block whole_of(const nn::Parameter& parameter) {
  const Index cols = parameter.cols == 0 ? 1 : parameter.cols;
  return {0, 0, parameter.rows * parameter.row_part.count, cols * parameter.col_part.count};
}

/// Calls visit(block, at) for the blocks of the whole tensor that hold the parameter's elements [first, first + elements), in their order
/// in memory. `at` is the number of the block's first element, counted from `first`. There are at most three blocks: the end of a row,
/// whole rows, and the beginning of a row.
template <class Visit>
constexpr void for_each_block(const nn::Parameter& parameter, Index first, Index elements, Visit&& visit) {
  const Index cols = parameter.cols == 0 ? 1 : parameter.cols;
  const Index top = parameter.row_part.index * parameter.rows, left = parameter.col_part.index * cols;
  for (Index at = 0; at < elements;) {
    const Index row = (first + at) / cols, col = (first + at) % cols, rest = elements - at;
    const Index rows = col == 0 && rest >= cols ? rest / cols : 1;
    const Block block{top + row, left + col, rows, std::min(rest, cols - col)};
    visit(block, at);
    at += block.elements();
  }
}

}  // namespace pdp::checkpoint
