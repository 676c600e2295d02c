#pragma once

#include <array>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/initializer.hpp>

namespace pdp::nn {

/// Where a layer stands in a model: the numbers on the way to it, as PyTorch's nn.Sequential counts. "3", or "1.0.2" in nested containers.
class Path {
 public:
  static constexpr int max_depth = 8;

  [[nodiscard]] constexpr Path child(Index number) const {
    if (depth_ == max_depth) throw ConfigError{text("layers are nested deeper than ", max_depth, " containers; use fewer")};
    Path longer = *this;
    longer.at_[static_cast<std::size_t>(longer.depth_++)] = number;
    return longer;
  }
  [[nodiscard]] std::string str() const {
    std::string joined;
    for (int i = 0; i < depth_; ++i) joined += text(i > 0 ? "." : "", at_[static_cast<std::size_t>(i)]);
    return joined;
  }

 private:
  std::array<Index, max_depth> at_{};
  int depth_ = 0;
};

/// A parameter tensor of a layer. In memory it is rows x cols; files hold it transposed where `transposed` says so, as PyTorch's Linear
/// does.
struct Parameter {
  Path layer{};
  const char* name = "";  // "weight"
  Index rows = 0;
  Index cols = 0;  // 0: a vector of `rows` elements
  bool transposed = false;
  Index offset = 0;  // of its first element, in elements, among the layer's parameters
  Index fan_in = 0;
  Index fan_out = 0;
  Initializer initializer{};

  [[nodiscard]] constexpr Index elements() const { return cols == 0 ? rows : rows * cols; }
  [[nodiscard]] std::vector<Index> file_shape() const {
    if (cols == 0) return {rows};
    return transposed ? std::vector<Index>{cols, rows} : std::vector<Index>{rows, cols};
  }
  /// The number that an element of the tensor in memory has in a file.
  [[nodiscard]] constexpr Index file_element(Index element) const { return transposed ? element % cols * rows + element / cols : element; }
  /// "0.weight"; "weight" where the layer is the whole model.
  [[nodiscard]] std::string full_name() const {
    const std::string at = layer.str();
    return at.empty() ? name : text(at, ".", name);
  }
};

}  // namespace pdp::nn
