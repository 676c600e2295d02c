#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

#include <pdp/core/functions.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

namespace detail {

/// A function and its derivative, as two objects.
template <class F, class G>
struct FunctionPair {
  [[no_unique_address]] F function;
  [[no_unique_address]] G gradient;

  template <class V>
  constexpr V operator()(const V& x) const {
    return function(x);
  }
  template <class V>
  constexpr V derivative(const V& y) const requires(std::invocable<const G&, const V&>) {
    return gradient(y);
  }
  template <class V>
  constexpr V derivative(const V& x, const V& y) const requires(std::invocable<const G&, const V&, const V&>) {
    return gradient(x, y);
  }
};

}  // namespace detail

/// y = function(x), elementwise, for a function of one's own.
///
/// `Function` is copied to the device. operator()(x) returns the value. derivative(y) returns the derivative, computed from the value; then
/// the layer works in place. A function whose derivative needs x has derivative(x, y) instead. All are templates over a vector type V, as
/// an optimizer's rule is: a few lanes on a CPU, one number on a GPU. They may use + - * / with vectors and numbers, sqrt, exp, tanh and
/// erf (after `using std::exp;`), and the functions of core/functions.hpp. Two generic lambdas will do:
///
///   nn::Elementwise{[](auto x) { return x * x; }, [](auto x, auto) { return 2 * x; }}
///
/// For a GPU, a .cu file of the program includes pdp/cuda/kernels/map.cuh and instantiates `template struct
/// pdp::cuda::Map<Function, float>;`. Those of the functions below come with the CMake target pdp::cuda.
template <class Function>
class Elementwise : public NoParameters {
  static constexpr bool reads_output_only = requires(const Function& function, float y) { function.derivative(y); };
  static_assert(
      requires(const Function& function, float x) {
        { function(x) } -> std::convertible_to<float>;
      },
      "pdp: the function of nn::Elementwise must take and return a value: `V operator()(const V& x) const`, or a generic lambda");
  static_assert(
      reads_output_only || requires(const Function& function, float x) { function.derivative(x, x); },
      "pdp: the function of nn::Elementwise needs its derivative: `V derivative(const V& y) const` from the value y, or `V "
      "derivative(const V& x, const V& y) const`; of two lambdas, the second is the derivative");

 public:
  static constexpr const char* name = [] {
    if constexpr (requires { Function::name; })
      return Function::name;
    else
      return "Elementwise";
  }();
  static constexpr bool is_elementwise = true;
  using works_in_place = std::conditional_t<reads_output_only, Elementwise, void>;

  template <class... A>
  requires(std::constructible_from<Function, A...>) constexpr explicit Elementwise(A... arguments) : function_{arguments...} {}
  template <class F, class G>
  requires(std::same_as<Function, detail::FunctionPair<F, G>>) constexpr Elementwise(F function, G derivative)
      : function_{std::move(function), std::move(derivative)} {}

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }
  [[nodiscard]] constexpr const Function& function() const { return function_; }

  template <class D, class T>
  void forward(const D& device, const State<T>&, Matrix<const T> x, Matrix<T> y, T*) const {
    map(device, function_, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>&, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    map_backward(device, function_, x, y, gradient_y, gradient_x);
  }

 private:
  [[no_unique_address]] Function function_;
};
template <class F, class G>
Elementwise(F, G) -> Elementwise<detail::FunctionPair<F, G>>;

}  // namespace pdp::nn
