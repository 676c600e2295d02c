#pragma once

#include <pdp/nn/misfit.hpp>
#include <pdp/nn/normalisation.hpp>
#include <pdp/nn/normalisation_options.hpp>

namespace pdp::nn {

/// y = x / sqrt(mean(x^2) + eps) * weight, for each vector of the last dimension: [rows, ..., width] -> [rows, ..., width]. weight begins
/// as 1. Zhang, Sennrich, "Root mean square layer normalization", arXiv:1910.07467.
///
/// eps is 1e-6 by default, as in many language models. PyTorch's nn.RMSNorm has another default, the epsilon of the element type:
/// std::numeric_limits<float>::epsilon(), about 1.2e-7, for floats. A model throws ConfigError unless eps is 0 or more; in a constant, this
/// is a compile error.
struct RmsNorm {
  static constexpr const char* name = "RmsNorm";
  using forgets_output = RmsNorm;

  Index width = 0;
  double eps = 1e-6;

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
    return {.how = {.channels = width, .eps = eps, .centred = false}, .has_bias = false, .is_last_dimension = true};
  }
};
static_assert(Layer<RmsNorm> && !works_in_place<RmsNorm>);

}  // namespace pdp::nn
