#pragma once

#include <pdp/core/affine.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

/// y = max(0, x), elementwise.
struct Relu : NoParameters {
  static constexpr const char* name = "Relu";
  static constexpr bool is_elementwise = true;
  using works_in_place = Relu;
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }

  template <class D, class T>
  void forward(const D& device, const State<T>&, Matrix<const T> x, Matrix<T> y, T*) const {
    relu(device, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>&, Matrix<const T>, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    relu_backward(device, y, gradient_y, gradient_x);
  }
};

/// The activation that a layer type computes, so that a linear layer before it may compute it in the same kernel. A type derived from Relu
/// does not count, since it may compute another function.
template <class L>
inline constexpr Activation activation_of = Activation::none;
template <>
inline constexpr Activation activation_of<Relu> = Activation::relu;

/// y = tanh(x), elementwise.
struct Tanh : NoParameters {
  static constexpr const char* name = "Tanh";
  static constexpr bool is_elementwise = true;
  using works_in_place = Tanh;
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }

  template <class D, class T>
  void forward(const D& device, const State<T>&, Matrix<const T> x, Matrix<T> y, T*) const {
    hyperbolic_tangent(device, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>&, Matrix<const T>, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    hyperbolic_tangent_backward(device, y, gradient_y, gradient_x);
  }
};

/// [a, b, ...] -> [a * b * ...]: the same values as one row. It is a view: its output is the memory of its input, and it computes nothing.
struct Flatten : NoParameters {
  static constexpr const char* name = "Flatten";
  static constexpr bool is_view = true;
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.known() ? Shape{input.elements()} : Shape{}; }

  template <class D, class T>
  void forward(const D&, const State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_input(const D&, const State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>, T*) const {}
};

}  // namespace pdp::nn
