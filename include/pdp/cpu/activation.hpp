#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class T>
void relu(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);

/// From the output of relu and its gradient: the gradient of its input.
template <class T>
void relu_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

template <class T>
void hyperbolic_tangent(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);

/// From the output of the tangent and its gradient: the gradient of its input.
template <class T>
void hyperbolic_tangent_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/activation.hpp>
#endif
