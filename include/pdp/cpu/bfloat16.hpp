#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/attention.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/elementwise_loss.hpp>
#include <pdp/cpu/float_rows.hpp>
#include <pdp/cpu/tag.hpp>

/// Operations on bfloat16 that widen some rows to floats, call the template of the same name, and round each of its results once. The
/// comments of the templates say what each computes.
namespace pdp::cpu {

template <std::same_as<BFloat16> T>
void fill_uniform(const Cpu& cpu, random::Key key, double bound, const random::Elements& elements, std::span<T> values);

template <std::same_as<BFloat16> T>
void softmax(const Cpu& cpu, Matrix<const T> x, Matrix<T> y);
template <std::same_as<BFloat16> T>
void softmax_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);

template <std::same_as<BFloat16> T>
void attend(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums);
template <std::same_as<BFloat16> T>
void attend_backward(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y, const T* sums,
                     Matrix<T> gradient_x);
template <std::same_as<BFloat16> T>
void rotate(const Cpu& cpu, const Attention& how, const Rotation& rotation, Matrix<T> x);

template <std::same_as<BFloat16> T>
void convolve(const Cpu& cpu, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y);
template <std::same_as<BFloat16> T>
void convolve_backward_input(const Cpu& cpu, const Convolution& how, const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <std::same_as<BFloat16> T>
void convolve_backward_weight(const Cpu& cpu, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y, float* gradient_weight,
                              float* gradient_bias, bool accumulate);

template <std::same_as<BFloat16> T>
void max_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y);
template <std::same_as<BFloat16> T>
void max_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x);
template <std::same_as<BFloat16> T>
void average_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y);
template <std::same_as<BFloat16> T>
void average_pool(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y);
template <std::same_as<BFloat16> T>
void average_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <std::same_as<BFloat16> T>
void average_pool_backward(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);

template <std::same_as<BFloat16> T>
void softmax_cross_entropy(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* row_scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored = no_class, double smoothing = 0,
                           const ClassWeights& weights = {});
template <std::same_as<BFloat16> T>
void softmax_part(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<float> part, Index ignored = no_class, double smoothing = 0, const ClassWeights& weights = {});
template <std::same_as<BFloat16> T>
void softmax_cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const float> parts, const double* row_scale, Matrix<T> gradient, LossSums* sums,
                                    Index ignored = no_class, double smoothing = 0, Index columns = 1, const ClassWeights& weights = {});
template <std::same_as<BFloat16> T>
void squared_error(const Cpu& cpu, Matrix<const T> output, Matrix<const float> target, const double* row_scale, Matrix<T> gradient,
                   LossSums* sums, bool ignores_nan = false);

template <class Function>
void elementwise_loss(const Cpu& cpu, const Function& function, Matrix<const BFloat16> output, Matrix<const float> target,
                      const double* row_scale, Matrix<BFloat16> gradient, LossSums* sums, bool ignores_nan = false) {
  const detail::FloatRows rows{cpu, output.rows, 2 * output.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<float> slope = block.room_for(gradient);
    elementwise_loss(cpu, function, block.widen(output), block.rows_of(target), row_scale, slope, sums, ignores_nan);
    block.narrow(slope, gradient);
  });
}

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/bfloat16.hpp>
#endif
