#pragma once

#include <concepts>
#include <span>

#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/functions.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/mean_over_outputs.hpp>

namespace pdp::loss {

namespace functions {

struct Huber {
  float delta = 1;

  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    const V size = pdp::functions::abs(output - target), near = pdp::functions::min(size, delta);
    return near * (size - 0.5f * near);
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const {
    return pdp::functions::max(-delta, pdp::functions::min(output - target, delta));
  }
};

}  // namespace functions

/// The mean over a sample's outputs of e^2 / 2 for errors e = |output - target| up to `delta`, and of delta (e - delta / 2) for larger
/// ones. P. J. Huber, "Robust estimation of a location parameter", 1964. Targets are vectors as wide as the output, of doubles if the
/// output is.
struct HuberLoss {
  using Target = float;
  static constexpr bool has_classes = false;
  float delta = 1;          // above 0
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

  /// Throws ConfigError if delta is not above 0.
  [[nodiscard]] constexpr functions::Huber function() const {
    if (!(delta > 0)) throw ConfigError{text("the delta of HuberLoss is ", static_cast<double>(delta), "; expected a number above 0")};
    return {delta};
  }
};

static_assert(IgnoresRows<HuberLoss>);

}  // namespace pdp::loss
