#pragma once

#include <concepts>

#include <pdp/core/convolution.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes y from x, as Convolution says, and adds the bias of each filter. `bias` may be null. Floats go through oneDNN's convolutions if
/// has_onednn(cpu) and oneDNN has one for the sizes. Otherwise, Eigen multiplies the weight by the windows of x, which are copied as
/// columns a few at a time.
template <std::floating_point T>
void convolve(const Cpu& cpu, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y);

/// Computes the gradient of x from the gradient of y.
template <std::floating_point T>
void convolve_backward_input(const Cpu& cpu, const Convolution& how, const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x);

/// Computes the gradients of weight and bias, and adds them to the present ones if `accumulate` is true. `gradient_bias` may be null. The
/// sums do not depend on the number of threads, unless oneDNN computes them.
template <std::floating_point T>
void convolve_backward_weight(const Cpu& cpu, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y, T* gradient_weight,
                              T* gradient_bias, bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/convolve.hpp>
#endif
