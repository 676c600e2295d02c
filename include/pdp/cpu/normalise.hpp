#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/group_normalisation.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes y from x, as GroupNormalisation says. `weight` and `bias` have one number for each channel; `bias` may be null. All of these
/// functions compute mean and variance from x, in Accumulated<T>. They subtract a first mean before they add up squares, so that values
/// with a large mean and a small variance lose no digits.
template <class T>
void normalise(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y);

/// Computes the gradient of x from x and the gradient of y.
template <class T>
void normalise_backward_input(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, const T* weight, Matrix<const T> gradient_y,
                              Matrix<T> gradient_x);

/// Computes the gradients of weight and bias, and adds them to the present ones if `accumulate` is true. `gradient_bias` may be null. The
/// sums over rows do not depend on the number of threads.
template <class T>
void normalise_backward_weight(const Cpu& cpu, const GroupNormalisation& how, Matrix<const T> x, Matrix<const T> gradient_y,
                               Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/normalise.hpp>
#endif
