#pragma once

#include <pdp/nn/layer.hpp>

namespace pdp::nn {

/// y = e^x / (sum of e^x), for each vector of the last dimension: [rows, ..., width] -> the same shape. loss::CrossEntropy contains it, so
/// a classifier with that loss ends without one.
struct Softmax : NoParameters {
  static constexpr const char* name = "Softmax";
  using works_in_place = Softmax;
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    softmax(device, vectors(x, width(state, x)), vectors(y, width(state, x)));
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    const Index cols = width(state, y);
    softmax_backward(device, vectors(y, cols), vectors(gradient_y, cols), vectors(gradient_x, cols));
  }

 private:
  template <class T>
  static constexpr Index width(const State<T>& state, const Matrix<const T>& samples) {
    return state.input.known() ? state.input.last() : samples.cols;
  }
};
static_assert(Layer<Softmax> && works_in_place<Softmax>);

}  // namespace pdp::nn
