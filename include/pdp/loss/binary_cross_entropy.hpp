#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/functions.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/mean_over_outputs.hpp>

namespace pdp::loss {

namespace functions {

/// -t log(p) - (1 - t) log(1 - p) for the sigmoid p of the output, in a form that neither overflows nor loses small values.
struct BinaryCrossEntropy {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    using std::exp, std::log1p;
    return pdp::functions::max(output, 0) - output * target + log1p(exp(-pdp::functions::abs(output)));
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const {
    using std::exp;
    return 1 / (1 + exp(-output)) - target;
  }
};

}  // namespace functions

namespace detail {
[[noreturn, gnu::cold]] void refuse_probability(Index row, Index output, double target);
}  // namespace detail

/// The mean over a sample's outputs of the cross-entropy between a target from 0 to 1 and the sigmoid of the output: for labels that do not
/// exclude each other. The outputs are logits, so the model ends without a Sigmoid. Targets are vectors as wide as the output, of doubles
/// if the output is.
struct BinaryCrossEntropy {
  using Target = float;
  static constexpr bool has_classes = false;
  bool ignore_nan = false;  // rows with a target that is NaN do not count; otherwise check() throws for them

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

  [[nodiscard]] static constexpr functions::BinaryCrossEntropy function() { return {}; }

  /// Throws ConfigError if a target is not from 0 to 1, except for NaN if that is ignored.
  template <std::floating_point Number>
  void check(std::span<const Number> targets, Index outputs) const {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool is_probability = !is_nan(targets[i]) && targets[i] >= 0 && targets[i] <= 1;
      if (!is_probability && !(ignore_nan && is_nan(targets[i])))
        detail::refuse_probability(as_index(i) / outputs, as_index(i) % outputs, as_double(targets[i]));
    }
  }
};

static_assert(IgnoresRows<BinaryCrossEntropy>);

}  // namespace pdp::loss

#ifndef PDP_SEPARATE_CORE
#include <pdp/loss/source/binary_cross_entropy.hpp>
#endif
