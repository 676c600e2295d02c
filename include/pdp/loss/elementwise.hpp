#pragma once

#include <concepts>
#include <span>
#include <utility>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/mean_over_outputs.hpp>

namespace pdp::loss {

namespace detail {

/// A function of output and target, and its derivative, as two objects.
template <class F, class G>
struct FunctionPair {
  [[no_unique_address]] F function;
  [[no_unique_address]] G gradient;

  template <class V>
  constexpr V operator()(const V& output, const V& target) const requires(std::invocable<const F&, const V&, const V&>) {
    return function(output, target);
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const requires(std::invocable<const G&, const V&, const V&>) {
    return gradient(output, target);
  }
};

}  // namespace detail

/// The options of an Elementwise loss.
struct ElementwiseOptions {
  bool ignore_nan = false;  // rows with a target that is NaN do not count; otherwise such a row makes the loss NaN
};

/// The mean over a sample's outputs of function(output, target), for a function of one's own. Targets are vectors as wide as the output, of
/// doubles if the output is.
///
/// `Function` is copied to the device. operator()(output, target) returns the value, derivative(output, target) its derivative with respect
/// to the output. Both are templates over a vector type V, as an optimizer's rule is: a few lanes on a CPU, one number on a GPU. They may
/// use + - * / with vectors and numbers, sqrt, exp, log, log1p, tanh and erf (after `using std::exp;`), and the functions of
/// core/functions.hpp. Two generic lambdas without captures will do:
///
///   loss::Elementwise{[](auto y, auto t) { return (y - t) * (y - t); }, [](auto y, auto t) { return 2 * (y - t); }}
///
/// For a GPU, a .cu file of the program includes pdp/cuda/kernels/elementwise_loss.cuh and instantiates `template struct
/// pdp::cuda::ElementwiseLoss<Function, float>;`. Those of pdp's losses come with the CMake target pdp::cuda.
template <class Function>
class Elementwise {
  static_assert(
      requires(const Function& function, float number) {
        { function(number, number) } -> std::convertible_to<float>;
      },
      "pdp: the function of loss::Elementwise must take an output and a target and return a value: `V operator()(const V& output, const V& "
      "target) const`, or a generic lambda");
  static_assert(
      requires(const Function& function, float number) {
        { function.derivative(number, number) } -> std::convertible_to<float>;
      },
      "pdp: the function of loss::Elementwise needs its derivative with respect to the output: `V derivative(const V& output, const V& "
      "target) const`; of two lambdas, the second is the derivative");

 public:
  using Target = float;
  static constexpr bool has_classes = false;
  bool ignore_nan;

  constexpr explicit Elementwise(Function function = {}, const ElementwiseOptions& options = {})
      : ignore_nan{options.ignore_nan}, function_{std::move(function)} {}
  template <class F, class G>
  requires(std::same_as<Function, detail::FunctionPair<F, G>>) constexpr Elementwise(F function, G derivative,
                                                                                     const ElementwiseOptions& options = {})
      : Elementwise{Function{std::move(function), std::move(derivative)}, options} {}

  [[nodiscard]] constexpr const Function& function() const { return function_; }
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

 private:
  [[no_unique_address]] Function function_;
};
template <class F, class G>
Elementwise(F, G) -> Elementwise<detail::FunctionPair<F, G>>;
template <class F, class G>
Elementwise(F, G, ElementwiseOptions) -> Elementwise<detail::FunctionPair<F, G>>;
template <class F>
Elementwise(F, ElementwiseOptions) -> Elementwise<F>;

}  // namespace pdp::loss
