#pragma once

#include <algorithm>
#include <concepts>
#include <span>

#include <pdp/core/dtype.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>

/// Parts of losses that are the mean over a sample's outputs of a function; see loss::Elementwise. These losses are aggregates without a
/// base class, as g++ warns of a base that a designated initializer leaves out.
namespace pdp::loss::detail {

/// Returns whether a row with this target counts.
template <std::floating_point Number>
[[nodiscard]] constexpr bool counts_row(bool ignore_nan, std::span<const Number> target) {
  return !ignore_nan || std::ranges::none_of(target, [](Number each) { return is_nan(each); });
}

/// Computes a loss that has the members function() and ignore_nan. On a CPU, calls check(targets, outputs) of a loss that has it.
template <class L, class D, class T>
void mean_over_outputs(const L& loss, const D& device, Matrix<const T> output, std::span<const Accumulated<T>> targets, const double* scale,
                       Matrix<T> gradient, LossSums* sums) {
  if constexpr (D::uses_host_memory && requires { loss.check(targets, output.cols); }) loss.check(targets, output.cols);
  elementwise_loss(device, loss.function(), output, Matrix<const Accumulated<T>>{targets.data(), output.rows, output.cols}, scale, gradient,
                   sums, loss.ignore_nan);
}

}  // namespace pdp::loss::detail
