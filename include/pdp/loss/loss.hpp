#pragma once

#include <concepts>
#include <span>

#include <pdp/core/device.hpp>

namespace pdp::loss {

/// A loss of a model's output against targets, row by row. `Target`: the type of a target's elements; target_elements(outputs): how many of
/// them a sample has. It adds what it finds in the rows to `sums`, and gives a gradient that is multiplied by `*scale` (one over the global
/// number of rows), so that whatever is reduced afterwards is a plain sum. No gradient is computed into an empty matrix.
///
/// What makes a target wrong is an optional member, check(targets, outputs). It is called with targets that the host has: for a device that
/// cannot say so, and by Trainer::fit and evaluate, which add the number of the sample to a LabelError.
template <class L, class D, class T = float>
concept Loss = std::copyable<L> &&
    requires(const L& loss, const D& device, Matrix<const T> output, std::span<const typename L::Target> targets, const double* scale,
             Matrix<T> gradient, LossSums* sums) {
  loss(device, output, targets, scale, gradient, sums);
  { loss.target_elements(Index{}) } -> std::same_as<Index>;
  { L::has_classes } -> std::convertible_to<bool>;  // whether there is an accuracy
};

/// A loss of an output of which each rank of a tensor-parallel group has some columns. part(): what a rank knows of each row from its own,
/// in `part_numbers` numbers; join(): the loss, and the gradient of its own columns, from what all of them know, one rank's rows after
/// another's. `first`: the number of the first column; `columns`: of all ranks.
template <class L, class D, class T = float>
concept ShardedLoss = Loss<L, D, T> &&
    requires(const L& loss, const D& device, Matrix<const T> own, Matrix<T> gradient, std::span<const typename L::Target> targets,
             Index first, Index columns, const double* scale, LossSums* sums, Matrix<Accumulated<T>> out,
             Matrix<const Accumulated<T>> parts) {
  { L::part_numbers } -> std::convertible_to<Index>;
  loss.part(device, own, targets, first, columns, out);
  loss.join(device, own, targets, first, columns, parts, scale, gradient, sums);
};

}  // namespace pdp::loss
