#pragma once

#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

/// y = x E^T with the table E of the Embedding with which the model begins: [rows, ..., width] -> [rows, ..., vocabulary]. So the two
/// layers share one parameter, as in Press and Wolf, "Using the output embedding to improve language models", EACL 2017. Sizes are those of
/// the Embedding. A model has at most one such layer, not inside Residual, Sum or Concat.
///
/// Files and optimizer groups know the parameter by the name that the Embedding gives it. In memory, each of the two layers has a copy.
/// Both copies get the sum of the two gradients and the same updates, so they stay equal to the bit. The plan of any strategy adds up the
/// gradients on the rank that has both copies, or between the two ranks of a pipeline (plan/ties.hpp).
struct TiedOutput {
  static constexpr const char* name = "TiedOutput";
  static constexpr bool is_tied = true;
  using forgets_output = TiedOutput;

  Index vocabulary = 0;
  Index width = 0;

  [[nodiscard]] constexpr Index input_elements() const { return width; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return misfit_of_last(width, input, false); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.with_last(vocabulary); }
  [[nodiscard]] constexpr Index parameter_elements() const { return padded_parameter(vocabulary * width); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return vocabulary * (input.known() ? input.elements() : width); }
  /// Its name and initial values are those of the Embedding (see parameters_of).
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{path, "weight", vocabulary, width, false, offset, width, vocabulary});
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    gemm_nt(device, vectors(x, width), Matrix<const T>{state.value, vocabulary, width}, vectors(y, vocabulary), false);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    gemm(device, vectors(gradient_y, vocabulary), Matrix<const T>{state.value, vocabulary, width}, vectors(gradient_x, width), false);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    gemm_tn(device, vectors(gradient_y, vocabulary), vectors(x, width), Matrix<Accumulated<T>>{state.gradient, vocabulary, width},
            state.accumulate);
  }
};
static_assert(Layer<TiedOutput> && is_tied<TiedOutput>);

}  // namespace pdp::nn
