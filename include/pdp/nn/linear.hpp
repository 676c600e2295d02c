#pragma once

#include <optional>

#include <pdp/core/affine.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

/// y = x W + b for the last dimension of a sample: [rows, ..., in] -> [rows, ..., out]. A sample of `in` values in several dimensions is
/// one vector. The weight is stored as [in, out], which suits products best; files hold PyTorch's [out, in].
struct Linear {
  static constexpr const char* name = "Linear";
  using forgets_output = Linear;

  Index in = 0;
  Index out = 0;
  bool bias = true;
  Initializer initializer = pytorch_default;      // of the weight
  std::optional<Initializer> bias_initializer{};  // unset: PyTorch's default if the weight has it, otherwise zeros

  [[nodiscard]] constexpr Index input_elements() const { return in; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return misfit_of_last(in, input); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    if (input.last() == in) return input.with_last(out);
    return input.known() ? Shape{out} : Shape{Shape::leading, out};
  }
  [[nodiscard]] constexpr Index parameter_elements() const { return weight_elements() + (bias ? padded_parameter(out) : 0); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape& input) const {
    return parameter_elements() * (input.known() && in > 0 ? input.elements() / in : 1);
  }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{path, "weight", in, out, true, offset, in, out, initializer});
    const Initializer of_bias = bias_initializer.value_or(initializer == pytorch_default ? pytorch_default : zeros);
    if (bias) visit(Parameter{path, "bias", out, 0, false, offset + weight_elements(), in, out, of_bias});
  }

  /// `activation` is the function of an in-place layer behind this one. That layer is then not called.
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*, Activation activation = Activation::none) const {
    affine(device, vectors(x, in), Matrix<const T>{state.value, in, out}, bias ? state.value + weight_elements() : nullptr, vectors(y, out),
           activation);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    gemm_nt(device, vectors(gradient_y, out), Matrix<const T>{state.value, in, out}, vectors(gradient_x, in), false);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    gemm_tn(device, vectors(x, in), vectors(gradient_y, out), Matrix<Accumulated<T>>{state.gradient, in, out}, state.accumulate);
    if (bias) sum_rows(device, vectors(gradient_y, out), state.gradient + weight_elements(), state.accumulate);
  }

 private:
  [[nodiscard]] constexpr Index weight_elements() const { return padded_parameter(in * out); }
};

}  // namespace pdp::nn
