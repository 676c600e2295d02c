#pragma once

#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/linear.hpp>

namespace pdp::nn {

namespace detail {

/// Throws ConfigError if there are fewer than 2 widths, or one is less than 1.
void check_perceptron(const std::vector<Index>& widths);

}  // namespace detail

/// Linear layers with an activation between each two. Their number and widths may come from a command line: {784, 64, 10} is Linear{784,
/// 64}, the activation, Linear{64, 10}. Parameters have the names of the same layers in one Sequential: 0.weight, 2.weight, ...
template <Layer Activation = Tanh>
class MultilayerPerceptron {
 public:
  using Leaves = LeafTypes<Linear, Activation>;

  /// `like` sets the options of every Linear except its widths, as in {.bias = false}. Throws ConfigError if there are fewer than 2 widths,
  /// or one is less than 1.
  explicit MultilayerPerceptron(std::vector<Index> widths, Activation activation = {}, Linear like = {})
      : widths_{std::move(widths)}, activation_{activation}, like_{like} {
    detail::check_perceptron(widths_);
    check_widths(flow(*this, Shape{}));
  }

  [[nodiscard]] const std::vector<Index>& widths() const { return widths_; }
  [[nodiscard]] Index leaves() const { return 2 * as_index(widths_.size()) - 3; }
  template <class Visit>
  void leaf(Index number, Visit&& visit) const {
    if (number < 0 || number >= leaves()) return;
    if (number % 2 == 1) return visit(activation_);
    Linear linear = like_;
    linear.in = widths_[as_size(number / 2)];
    linear.out = widths_[as_size(number / 2) + 1];
    visit(linear);
  }
  template <class Visit>
  void for_each_leaf(const Path& path, Visit&& visit) const {
    for (Index number = 0; number < leaves(); ++number) leaf(number, [&](const auto& layer) { visit(layer, path.child(number)); });
  }

 private:
  std::vector<Index> widths_;
  Activation activation_;
  Linear like_;
};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/multilayer_perceptron.hpp>
#endif
