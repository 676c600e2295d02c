#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes y = max(x, 0), elementwise; NaN stays NaN. y may be x.
template <class T>
void relu(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);

/// Computes the gradient of relu's input from the output and the gradient of the output.
template <class T>
void relu_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

/// Computes y = tanh(x), elementwise. y may be x.
template <class T>
void hyperbolic_tangent(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);

/// Computes the gradient of the tangent's input from the output and the gradient of the output.
template <class T>
void hyperbolic_tangent_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/activation.hpp>
#endif
