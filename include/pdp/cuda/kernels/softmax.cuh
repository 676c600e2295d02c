#pragma once

#include <pdp/cuda/kernels/rows.cuh>
#include <pdp/cuda/operations.hpp>

/// The softmax of rows. A warp takes a row.
namespace pdp::cuda {

namespace kernel {

__device__ inline float largest_of_warp(float value) {
  for (int apart = static_cast<int>(warp_threads) / 2; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, value, apart);
    value = other > value || is_nan(other) ? other : value;  // NaN stays
  }
  return value;
}

template <class T>
__global__ void __launch_bounds__(block_threads) softmax(const T* x, Index rows, Index cols, T* y) {
  for (Index row = first_row(); row < rows; row += rows_at_once()) {
    const T* const from = x + row * cols;
    float largest = as_float(from[0]);
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) {
      const float value = as_float(from[c]);
      largest = value > largest || is_nan(value) ? value : largest;
    }
    largest = largest_of_warp(largest);
    double sum = 0;
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) sum += static_cast<double>(expf(as_float(from[c]) - largest));
    const auto scale = static_cast<float>(1 / sum_of_warp(sum));
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads)
      y[row * cols + c] = static_cast<T>(expf(as_float(from[c]) - largest) * scale);
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads) softmax_backward(const T* y, const T* gradient_y, Index rows, Index cols, T* gradient_x) {
  for (Index row = first_row(); row < rows; row += rows_at_once()) {
    const T *const out = y + row * cols, *const gradient = gradient_y + row * cols;
    double sum = 0;
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads)
      sum += static_cast<double>(as_float(out[c])) * static_cast<double>(as_float(gradient[c]));
    const auto mean = static_cast<float>(sum_of_warp(sum));
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads)
      gradient_x[row * cols + c] = static_cast<T>(as_float(out[c]) * (as_float(gradient[c]) - mean));
  }
}

}  // namespace kernel

template <Computed T>
void softmax(const Device& device, Matrix<const T> x, Matrix<T> y) {
  if (stored(x).size() > 0)
    launch(device, kernel::softmax<Stored<T>>, blocks_for_rows(x.rows), block_threads, stored(x.data), x.rows, x.cols, stored(y.data));
}
template <Computed T>
void softmax_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  if (stored(y).size() > 0)
    launch(device, kernel::softmax_backward<Stored<T>>, blocks_for_rows(y.rows), block_threads, stored(y.data), stored(gradient_y.data),
           y.rows, y.cols, stored(gradient_x.data));
}

}  // namespace pdp::cuda
