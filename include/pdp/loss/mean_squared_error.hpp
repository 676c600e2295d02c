#pragma once

#include <algorithm>
#include <concepts>
#include <span>

#include <pdp/core/finite.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>

namespace pdp::loss {

/// The mean over a sample's outputs of (output - target)^2. Targets are vectors as wide as the output, of doubles if the output is.
struct MeanSquaredError {
  using Target = float;
  static constexpr bool has_classes = false;
  bool ignore_nan = false;  // rows with a target that is NaN do not count; otherwise such a row makes the loss NaN

  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }
  [[nodiscard]] constexpr bool ignores_rows() const { return ignore_nan; }
  template <std::floating_point Number>
  [[nodiscard]] constexpr bool counts(std::span<const Number> target) const {
    return !ignore_nan || std::ranges::none_of(target, [](Number each) { return is_nan(each); });
  }

  template <class D, class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const Accumulated<T>> targets, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    squared_error(device, output, Matrix<const Accumulated<T>>{targets.data(), output.rows, output.cols}, scale, gradient, sums,
                  ignore_nan);
  }
};

static_assert(IgnoresRows<MeanSquaredError>);

}  // namespace pdp::loss
