#pragma once

#include <pdp/core/finite.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cuda/elementwise_loss.hpp>
#include <pdp/cuda/kernels/rows.cuh>

namespace pdp::cuda {

namespace kernel {

/// Each warp takes every n-th row, for n warps.
template <class Function, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_loss(Function function, const T* output, const float* target, Index rows, Index cols, const double* row_scale, T* gradient,
                     LossSums* sums, bool ignores_nan, Partials partials) {
  const float width = static_cast<float>(cols), factor = static_cast<float>(*row_scale) / width;
  double loss = 0;
  for (Index r = first_row(); r < rows; r += rows_at_once()) {
    if (ignores_nan && has_nan(target + r * cols, cols)) {
      clear_row(gradient, r, cols);
      continue;
    }
    float sum = 0;
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) {
      const float from = as_float(output[r * cols + c]), to = target[r * cols + c];
      sum += function(from, to);
      if (gradient != nullptr) gradient[r * cols + c] = static_cast<T>(function.derivative(from, to) * factor);
    }
    sum = sum_of_warp(sum);
    if (threadIdx.x % warp_threads == 0) loss += static_cast<double>(sum / width);
  }
  add_up(loss, 0, partials, &sums->loss, nullptr);
}

}  // namespace kernel

template <class Function, Computed T>
void ElementwiseLoss<Function, T>::compute(const Device& device, const Function& function, Matrix<const T> output,
                                           Matrix<const Accumulated<T>> target, const double* scale, Matrix<T> gradient, LossSums* sums,
                                           bool ignores_nan) {
  if (output.rows == 0) return;
  launch(device, kernel::elementwise_loss<Function, Stored<T>>, blocks_for_rows(output.rows), block_threads, function, stored(output.data),
         target.data, output.rows, output.cols, scale, stored(gradient.data), sums, ignores_nan, device.state().partials());
}

}  // namespace pdp::cuda
