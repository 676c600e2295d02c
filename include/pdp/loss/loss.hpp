#pragma once

#include <concepts>
#include <span>

#include <pdp/core/device.hpp>

namespace pdp::loss {

/// A loss of a model's output against targets, row by row. `Target`: the type of a target's elements; target_elements(outputs): how many of
/// them a sample has. It gives sums over the rows, and a gradient that is multiplied by `scale` (one over the global number of rows), so
/// that whatever is reduced afterwards is a plain sum. No gradient is computed into an empty matrix.
template <class L, class D, class T = float>
concept Loss = std::copyable<L> && requires(const L& loss, const D& device, Matrix<const T> output,
                                            std::span<const typename L::Target> targets, T scale, Matrix<T> gradient) {
  { loss(device, output, targets, scale, gradient) } -> std::same_as<LossSums>;
  { loss.target_elements(Index{}) } -> std::same_as<Index>;
  { L::has_classes } -> std::convertible_to<bool>;  // whether there is an accuracy
};

}  // namespace pdp::loss
