#pragma once

#include <Eigen/Core>

#include <pdp/core/view.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

namespace detail {

template <class T>
auto array(Matrix<T> matrix) {
  using Array = Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Array, Array>>{matrix.data, matrix.size()};
}

}  // namespace detail

template <class T>
void relu(const Cpu&, Matrix<const T> x, Matrix<T> y) {
  detail::array(y) = detail::array(x).max(T{0});
}

/// From the output of relu and its gradient: the gradient of its input.
template <class T>
void relu_backward(const Cpu&, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::array(gradient_x) = (detail::array(y) > T{0}).select(detail::array(gradient_y), T{0});
}

template <class T>
void hyperbolic_tangent(const Cpu&, Matrix<const T> x, Matrix<T> y) {
  detail::array(y) = detail::array(x).tanh();
}

/// From the output of the tangent and its gradient: the gradient of its input.
template <class T>
void hyperbolic_tangent_backward(const Cpu&, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::array(gradient_x) = detail::array(gradient_y) * (T{1} - detail::array(y).square());
}

}  // namespace pdp::host
