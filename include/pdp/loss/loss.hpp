#pragma once

#include <concepts>
#include <span>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/pass.hpp>

namespace pdp::loss {

namespace detail {

template <class L, class D>
struct ComputedBy {
  using type = L;
};
template <class L, class D>
requires requires(const L& loss, const D& device) { loss.on(device); }
struct ComputedBy<L, D> {
  using type = decltype(std::declval<const L&>().on(std::declval<const D&>()));
};

}  // namespace detail

/// The object that computes a loss on a device: the result of the loss's member on(device), which may own memory of the device, or the loss
/// itself if it has no such member.
template <class L, class D>
using OnDevice = typename detail::ComputedBy<L, D>::type;

/// Returns the object that computes a loss on a device.
template <class L, class D>
[[nodiscard]] OnDevice<L, D> on_device(const L& loss, const D& device) {
  if constexpr (requires { loss.on(device); })
    return loss.on(device);
  else
    return loss;
}

namespace detail {

/// Whether a loss of outputs of type T takes targets of this type.
template <class L, class D, class T, class Target>
concept Takes = requires(const OnDevice<L, D>& loss, const D& device, Matrix<const T> output, std::span<const Target> targets,
                         const double* scale, Matrix<T> gradient, LossSums* sums, const Pass& pass) {
  requires requires { loss(device, output, targets, scale, gradient, sums); } || requires {
    loss(device, output, targets, scale, gradient, sums, pass);
  };
};

template <class L, class D, class T>
struct TargetOf {};
template <class L, class D, class T>
requires requires { typename L::Target; }
struct TargetOf<L, D, T> {
  using type = typename L::Target;
};
template <class L, class D>
requires(std::same_as<typename L::Target, float>&& Takes<L, D, double, double>) struct TargetOf<L, D, double> {
  using type = double;
};

/// Calls an object that computes a loss, which may take the pass or not.
template <class There, class D, class T, class Target>
void call(const There& loss, const D& device, Matrix<const T> output, std::span<const Target> targets, const double* scale,
          Matrix<T> gradient, LossSums* sums, [[maybe_unused]] const Pass& pass) {
  if constexpr (requires { loss(device, output, targets, scale, gradient, sums, pass); })
    loss(device, output, targets, scale, gradient, sums, pass);
  else
    loss(device, output, targets, scale, gradient, sums);
}

}  // namespace detail

/// The type in which a loss of outputs of type T takes its targets: L::Target, or double in place of float if T is double and the loss
/// takes doubles.
template <class L, class D, class T>
using TargetOf = typename detail::TargetOf<L, D, T>::type;

/// A loss of a model's output against targets, row by row. `Target` is the element type of targets in datasets; target_elements(outputs)
/// returns how many of them the target of a sample has, for a model with that many outputs. A call adds the results of all rows to `sums`.
/// It computes the gradient multiplied by `*scale` (one over the global number of rows, times the loss scale), so later reductions are
/// plain sums. It computes no gradient if `gradient` is empty.
///
/// A loss may take the Pass as one more argument, for example to compute another loss in evaluations than in steps.
///
/// An optional member check(targets, outputs) throws for wrong targets. It is called with targets in host memory: for a device that cannot
/// check them, and by Trainer::fit and evaluate, which add the number of the sample to a LabelError.
///
/// An optional member check_outputs(outputs) throws if the loss does not fit a model with so many outputs.
///
/// A loss that ignores rows has a member counts(target), and one with weighted rows a member weight(target); see loss/counted_rows.hpp. A
/// loss that needs memory of a device, such as a table, has a member on(device). It returns an object with the functions that compute.
template <class L, class D, class T = float>
concept Loss = Copyable<L> && detail::Takes<L, D, T, TargetOf<L, D, T>> && requires(const L& loss) {
  { loss.target_elements(Index{}) } -> std::same_as<Index>;
  { L::has_classes } -> std::convertible_to<bool>;  // whether there is an accuracy
};

/// Computes a loss once.
template <class L, class D, class T>
void compute(const L& loss, const D& device, Matrix<const T> output, std::span<const TargetOf<L, D, T>> targets, const double* scale,
             Matrix<T> gradient, LossSums* sums, const Pass& pass) {
  if constexpr (requires { loss.on(device); })
    detail::call(loss.on(device), device, output, targets, scale, gradient, sums, pass);
  else
    detail::call(loss, device, output, targets, scale, gradient, sums, pass);
}

/// A loss of an output with columns divided over the ranks of a tensor-parallel group. part() computes `part_numbers` numbers a row from a
/// rank's own columns. join() computes the loss, and the gradient of the own columns, from the parts of all ranks, one rank's rows after
/// another's. `first` is the number of the first own column; `columns` counts those of all ranks.
template <class L, class D, class T = float>
concept ShardedLoss = Loss<L, D, T> && requires(const OnDevice<L, D>& loss, const D& device, Matrix<const T> own, Matrix<T> gradient,
                                                std::span<const TargetOf<L, D, T>> targets, Index first, Index columns, const double* scale,
                                                LossSums* sums, Matrix<Accumulated<T>> out, Matrix<const Accumulated<T>> parts) {
  { L::part_numbers } -> std::convertible_to<Index>;
  loss.part(device, own, targets, first, columns, out);
  loss.join(device, own, targets, first, columns, parts, scale, gradient, sums);
};

}  // namespace pdp::loss
