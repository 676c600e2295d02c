#pragma once

#include <pdp/core/batch_normalisation.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/tag.hpp>

/// Batch normalisation in parts, between which the ranks add up their sums (see BatchNormalisation).
namespace pdp::cpu {

/// Writes the sums of this rank's rows that forward needs.
template <class T>
void batch_statistics(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, double* sums);

/// Computes y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance from the sums of all ranks.
template <class T>
void batch_normalise(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums, const T* weight,
                     const T* bias, Matrix<T> y);
/// Computes the same with the given mean and variance of each channel. If `mean` or `bias` is null, it is 0.
template <class T>
void normalise_channels(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* mean, const T* variance, const T* weight,
                        const T* bias, Matrix<T> y);

/// Writes the sums of this rank's rows that backward needs, twice: those to add up over the ranks, and a copy to keep.
template <class T>
void batch_gradient_sums(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, Matrix<const T> gradient_y,
                         double* sums);
/// Computes the gradient of x from the sums of all ranks.
template <class T>
void batch_normalise_backward(const Cpu& cpu, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                              const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x);
/// Computes the gradients of weight and bias, and the changes of running mean and variance for `rows` rows. They lie in `gradient`, each
/// `block` elements behind the one before.
template <class T>
void batch_parameter_gradients(const Cpu& cpu, const BatchNormalisation& how, Index rows, double momentum, const StepNumbers* numbers,
                               const T* mean, const T* variance, const double* sums, Index block, Accumulated<T>* gradient,
                               bool accumulate);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/batch_normalise.hpp>
#endif
