#pragma once

#include <concepts>
#include <span>

#include <pdp/core/dtype.hpp>
#include <pdp/core/functions.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/mean_over_outputs.hpp>

namespace pdp::loss {

namespace functions {

struct AbsoluteError {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    return pdp::functions::abs(output - target);
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const {
    return pdp::functions::sign(output - target);
  }
};

}  // namespace functions

/// The mean over a sample's outputs of |output - target|, the mean absolute error. The derivative at 0 is 0. Targets are vectors as wide as
/// the output, of doubles if the output is.
struct L1 {
  using Target = float;
  static constexpr bool has_classes = false;
  bool ignore_nan = false;  // rows with a target that is NaN do not count; otherwise such a row makes the loss NaN

  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }
  [[nodiscard]] constexpr bool ignores_rows() const { return ignore_nan; }
  template <std::floating_point Number>
  [[nodiscard]] constexpr bool counts(std::span<const Number> target) const {
    return detail::counts_row(ignore_nan, target);
  }

  template <class D, class T>
  void operator()(const D& device, Matrix<const T> output, std::span<const Accumulated<T>> targets, const double* scale, Matrix<T> gradient,
                  LossSums* sums) const {
    detail::mean_over_outputs(*this, device, output, targets, scale, gradient, sums);
  }

  [[nodiscard]] static constexpr functions::AbsoluteError function() { return {}; }
};

static_assert(IgnoresRows<L1>);

}  // namespace pdp::loss
