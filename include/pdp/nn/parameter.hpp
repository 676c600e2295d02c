#pragma once

#include <array>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/initializer.hpp>

namespace pdp::nn {

/// The position of a layer in a model: the numbers on the way to it, as PyTorch's nn.Sequential counts. "3", or "1.0.2" in nested
/// containers. It also says whether the layer is inside a Frozen.
class Path {
 public:
  static constexpr int max_depth = 8;

  /// Returns the path of layer `number` inside this one. Throws ConfigError if it is nested deeper than max_depth.
  [[nodiscard]] constexpr Path child(Index number) const {
    if (depth_ == max_depth) layers_are_nested_too_deep();
    Path longer = *this;
    longer.at_[as_size(longer.depth_++)] = number;
    return longer;
  }
  /// Returns the path of a layer whose path inside this one is `inner`.
  [[nodiscard]] constexpr Path joined(const Path& inner) const {
    Path longer = *this;
    for (int i = 0; i < inner.depth_; ++i) longer = longer.child(inner.at_[as_size(i)]);
    longer.is_frozen_ = is_frozen_ || inner.is_frozen_;
    return longer;
  }
  /// Returns the same path, inside a Frozen.
  [[nodiscard]] constexpr Path frozen() const {
    Path same = *this;
    same.is_frozen_ = true;
    return same;
  }
  [[nodiscard]] constexpr bool is_frozen() const { return is_frozen_; }
  [[nodiscard]] std::string str() const;

 private:
  [[noreturn]] static void layers_are_nested_too_deep();

  std::array<Index, max_depth> at_{};
  int depth_ = 0;
  bool is_frozen_ = false;
};

/// The part of a layer that a rank has: number `index` of `count` equal parts. The default is the whole layer, which is not divided over a
/// tensor-parallel group.
struct Part {
  int index = 0;
  int count = 1;

  friend constexpr bool operator==(const Part&, const Part&) = default;
};

/// A parameter tensor of a layer. In memory it is rows x cols; files hold it transposed if `transposed`, as PyTorch's Linear does. If the
/// tensor is divided, this is one rank's part of it, of `rows` rows and `cols` columns.
struct Parameter {
  Path layer{};
  const char* name = "";  // "weight"
  Index rows = 0;
  Index cols = 0;  // 0: a vector of `rows` elements
  bool transposed = false;
  Index offset = 0;  // of the first element among the layer's parameters, in elements
  Index fan_in = 0;
  Index fan_out = 0;
  Initializer initializer{};
  Part row_part{}, col_part{};     // this part's rows and columns among those of the whole tensor
  bool is_buffer = false;          // not trained: the layer computes its changes (see State)
  Shape row_shape{};               // of a row in a file, such as [channels, height, width] of a filter; unset: [cols]. Not if `transposed`
  random::GroupedColumns order{};  // of the whole tensor's columns (of a vector: its elements) in files
  bool is_copy = false;            // of the model's first parameter, in a tied layer; `layer` and `name` are those of that parameter
  Path tied{};                     // the path of that tied layer

  [[nodiscard]] constexpr Index elements() const { return cols == 0 ? rows : rows * cols; }
  [[nodiscard]] constexpr bool is_divided() const { return row_part.count > 1 || col_part.count > 1; }
  /// Returns the part with number `index` of the same tensor.
  [[nodiscard]] constexpr Parameter part(int index) const {
    Parameter other = *this;
    if (row_part.count > 1) other.row_part.index = index;
    if (col_part.count > 1) other.col_part.index = index;
    return other;
  }
  /// Returns the shape of the whole tensor in a file.
  [[nodiscard]] std::vector<Index> file_shape() const;
  [[nodiscard]] constexpr Index file_elements() const { return elements() * row_part.count * col_part.count; }
  /// Returns the map from the elements in memory, from `first` on, to their numbers in a file.
  [[nodiscard]] constexpr random::Elements file_numbers(Index first) const {
    const Index row = row_part.index * rows, col = col_part.index * cols;
    if (cols == 0) return {.first = first, .left = row, .order = order};
    const Index all_rows = rows * row_part.count, all_cols = cols * col_part.count;
    if (transposed) return {first, cols, row, 1, all_rows, col, order};
    return {first, cols, row * all_cols, all_cols, 1, col, order};
  }
  [[nodiscard]] constexpr Index file_element(Index element) const { return file_numbers(element)[0]; }
  /// Returns the initial values of `count` elements in memory, from `first` on. `key`: of this tensor. For initializers other than uniform
  /// ones, which a device computes itself. Throws ConfigError if the initializer has no function that it needs.
  [[nodiscard]] std::vector<double> initial_values(random::Key key, Index first, Index count) const;
  /// Returns "0.weight", or "weight" if the layer is the whole model.
  [[nodiscard]] std::string full_name() const;
};

/// Returns the copy of a parameter in a tied layer. `own`: the parameter as that layer describes it.
constexpr Parameter tied_to(const Parameter& first, const Parameter& own) {
  Parameter copy = first;
  copy.offset = own.offset;
  copy.is_copy = true;
  copy.tied = own.layer;
  return copy;
}

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/parameter.hpp>
#endif
