#pragma once

#include <concepts>

#include <pdp/core/matrix.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes the largest value of each window. A window that has a NaN gives NaN; one that has no value of the image gives -infinity.
template <std::floating_point T>
void max_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y);

/// Computes the gradient of x from x, y and the gradient of y. If several values of a window are the largest, the first of them gets the
/// gradient.
template <std::floating_point T>
void max_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x);

/// Computes the mean of each window.
template <std::floating_point T>
void average_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y);
template <std::floating_point T>
void average_pool(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y);

/// Computes the gradient of x from the gradient of y.
template <std::floating_point T>
void average_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <std::floating_point T>
void average_pool_backward(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/pool.hpp>
#endif
