#pragma once

#include <pdp/nn/misfit.hpp>
#include <pdp/nn/normalisation.hpp>
#include <pdp/nn/normalisation_options.hpp>

namespace pdp::nn {

/// y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, for each vector of the last dimension: [rows, ..., width] -> [rows, ...,
/// width]. weight begins as 1, bias as 0. A model throws ConfigError unless eps is 0 or more; in a constant, this is a compile error. Ba,
/// Kiros, Hinton, "Layer normalization", arXiv:1607.06450.
struct LayerNorm {
  static constexpr const char* name = "LayerNorm";
  using forgets_output = LayerNorm;

  Index width = 0;
  double eps = 1e-5;
  bool bias = true;

  [[nodiscard]] constexpr Index input_elements() const { return width; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return misfit_of_last(width, input); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    detail::check_eps(name, eps);
    return input.rank() > 0 ? input : Shape{Shape::leading, width};
  }
  [[nodiscard]] constexpr Index parameter_elements() const { return layer().parameter_elements(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    layer().parameters(path, offset, visit);
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    layer().forward(device, state, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    layer().backward_input(device, state, x, gradient_y, gradient_x);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    layer().backward_weight(device, state, x, gradient_y);
  }

 private:
  [[nodiscard]] constexpr detail::NormalisationLayer layer() const {
    return {.how = {.channels = width, .eps = eps}, .has_bias = bias, .is_last_dimension = true};
  }
};
static_assert(Layer<LayerNorm> && !works_in_place<LayerNorm>);

}  // namespace pdp::nn
