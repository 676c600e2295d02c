#pragma once

#include <cstdint>
#include <span>

#include <pdp/core/dtype.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step.hpp>
#include <pdp/core/view.hpp>
#include <pdp/cuda/handle.hpp>

/// What core/device.hpp asks of a device, and what each operation means: its body for a CPU in host/ says so, too. All give their work to
/// the device's stream and return. They throw DeviceError where it cannot be given; what fails later is thrown by a later call.
namespace pdp::cuda {

void gemm(const Device& device, Matrix<const float> a, Matrix<const float> b, Matrix<float> c, bool accumulate);
void gemm_nt(const Device& device, Matrix<const float> a, Matrix<const float> b, Matrix<float> c, bool accumulate);
void gemm_tn(const Device& device, Matrix<const float> a, Matrix<const float> b, Matrix<float> c, bool accumulate);

void add_row(const Device& device, const float* row, Matrix<float> rows);
void sum_rows(const Device& device, Matrix<const float> rows, float* sums, bool accumulate);
void relu(const Device& device, Matrix<const float> x, Matrix<float> y);
void relu_backward(const Device& device, Matrix<const float> y, Matrix<const float> gradient_y, Matrix<float> gradient_x);
void hyperbolic_tangent(const Device& device, Matrix<const float> x, Matrix<float> y);
void hyperbolic_tangent_backward(const Device& device, Matrix<const float> y, Matrix<const float> gradient_y, Matrix<float> gradient_x);
void add(const Device& device, Matrix<const float> left, Matrix<const float> right, Matrix<float> out);
void copy(const Device& device, Matrix<const float> from, Matrix<float> to);
void copy(const Device& device, Matrix<const BFloat16> from, Matrix<BFloat16> to);
void convert(const Device& device, Matrix<const float> from, Matrix<BFloat16> to);
void convert(const Device& device, Matrix<const BFloat16> from, Matrix<float> to);

/// Of classes that there is a logit for: the host has checked them (label_of).
void softmax_cross_entropy(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, const double* scale,
                           Matrix<float> gradient, LossSums* sums);
void softmax_part(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<float> part);
void softmax_cross_entropy_of_parts(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const float> parts, const double* scale, Matrix<float> gradient, LossSums* sums);
void squared_error(const Device& device, Matrix<const float> output, Matrix<const float> target, const double* scale,
                   Matrix<float> gradient, LossSums* sums);

void sum_of_squares(const Device& device, Matrix<const float> values, double* sum);
void judge(const Device& device, StepNumbers* numbers, std::int64_t* skipped, double clip_norm, bool skips_non_finite);
/// The bits of the host's.
void fill_uniform(const Device& device, random::Key key, double bound, const random::Elements& elements, std::span<float> values);

}  // namespace pdp::cuda
