#pragma once

#include <concepts>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes y = e^x / (sum of e^x) for each row. y may be x. A row without a finite number gives NaN.
template <std::floating_point T>
void softmax(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);

/// Computes the gradient of x from y and the gradient of y. gradient_x may be gradient_y.
template <std::floating_point T>
void softmax_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/softmax.hpp>
#endif
