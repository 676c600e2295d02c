#pragma once

#include <pdp/core/convolution.hpp>

namespace pdp::cpu::onednn {

// Defined in the same programs as the functions of product.hpp. The calling thread keeps the kernels that oneDNN makes for the sizes. Each
// function returns false, and computes nothing, if oneDNN has no kernel for them. Throws Error if oneDNN fails. No size may be 0.

/// Computes y from `rows` images in x. `bias` may be null.
[[gnu::weak]] bool convolve(const Convolution& how, Index rows, const float* x, const float* weight, const float* bias, float* y,
                            int threads);

/// Computes the gradient of x.
[[gnu::weak]] bool convolve_backward_input(const Convolution& how, Index rows, const float* weight, const float* gradient_y,
                                           float* gradient_x, int threads);

/// Computes the gradients of weight and bias, and adds them to the present ones if `accumulate` is true. `gradient_bias` may be null.
[[gnu::weak]] bool convolve_backward_weight(const Convolution& how, Index rows, const float* x, const float* gradient_y,
                                            float* gradient_weight, float* gradient_bias, bool accumulate, int threads);

}  // namespace pdp::cpu::onednn
