#pragma once

#include <optional>

#include <pdp/core/affine.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

/// y = x W + b: [rows, in] -> [rows, out]. The weight is stored as [in, out], which suits products best; files hold PyTorch's [out, in].
struct Linear {
  static constexpr const char* name = "Linear";
  using forgets_output = Linear;

  Index in = 0;
  Index out = 0;
  bool bias = true;
  Initializer initializer = pytorch_default;      // of the weight
  std::optional<Initializer> bias_initializer{};  // unset: PyTorch's default if the weight has it, otherwise zeros

  [[nodiscard]] constexpr Index input_elements() const { return in; }
  [[nodiscard]] constexpr Shape output(const Shape&) const { return Shape{out}; }
  [[nodiscard]] constexpr Index parameter_elements() const { return weight_elements() + (bias ? padded_parameter(out) : 0); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{path, "weight", in, out, true, offset, in, out, initializer});
    const Initializer of_bias = bias_initializer.value_or(initializer == pytorch_default ? pytorch_default : zeros);
    if (bias) visit(Parameter{path, "bias", out, 0, false, offset + weight_elements(), in, out, of_bias});
  }

  /// `activation` is the function of an in-place layer behind this one. That layer is then not called.
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*, Activation activation = Activation::none) const {
    affine(device, x, Matrix<const T>{state.value, in, out}, bias ? state.value + weight_elements() : nullptr, y, activation);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    gemm_nt(device, gradient_y, Matrix<const T>{state.value, in, out}, gradient_x, false);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    gemm_tn(device, x, gradient_y, Matrix<Accumulated<T>>{state.gradient, in, out}, state.accumulate);
    if (bias) sum_rows(device, gradient_y, state.gradient + weight_elements(), state.accumulate);
  }

 private:
  [[nodiscard]] constexpr Index weight_elements() const { return padded_parameter(in * out); }
};

}  // namespace pdp::nn
