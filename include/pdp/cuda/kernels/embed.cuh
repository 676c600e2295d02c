#pragma once

#include <cstdint>

#include <pdp/core/token.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>

/// Rows of a table for tokens.
namespace pdp::cuda {

namespace kernel {

/// With a thread for each value of y. A token outside of the vocabulary gives NaN, which reaches the loss.
template <class T>
struct Embed {
  const std::int32_t* tokens;
  const T* weight;
  T* y;
  TokenRows rows;
  Index own_rows, width;
  __device__ void operator()(Index i) const {
    const std::int32_t token = tokens[i / width];
    const Index row = token - rows.first;
    y[i] = !is_token(token, rows.vocabulary) ? static_cast<T>(__builtin_nanf(""))
           : 0 <= row && row < own_rows      ? weight[row * width + i % width]
                                             : static_cast<T>(0.0f);
  }
};

/// A block adds up a row of the gradient, in the order of the tokens. It looks at block_threads tokens at a time, and skips those that have
/// none of its row.
template <class T>
__global__ void __launch_bounds__(block_threads) embed_backward(const std::int32_t* tokens, Index count, Index first_token,
                                                                const T* gradient_y, float* gradient_weight, Index width, bool accumulate) {
  __shared__ std::int32_t at_once[block_threads];
  __shared__ bool has_row;
  const auto row = static_cast<std::int32_t>(first_token + blockIdx.x);
  float* const to = gradient_weight + Index{blockIdx.x} * width;
  for (Index first_column = 0; first_column < width; first_column += block_threads) {
    const Index column = first_column + threadIdx.x;
    float sum = accumulate && column < width ? to[column] : 0;
    for (Index first = 0; first < count; first += block_threads) {
      const Index own = first + threadIdx.x;
      __syncthreads();  // the tokens before have been read
      if (threadIdx.x == 0) has_row = false;
      at_once[threadIdx.x] = own < count ? tokens[own] : -1;
      __syncthreads();
      if (at_once[threadIdx.x] == row) has_row = true;
      __syncthreads();
      if (!has_row || column >= width) continue;
      for (Index i = 0; i < block_threads; ++i)
        if (at_once[i] == row) sum += as_float(gradient_y[(first + i) * width + column]);
    }
    if (column < width) to[column] = sum;
  }
}

}  // namespace kernel

template <Computed T>
void embed(const Device& device, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> weight, Matrix<T> y) {
  for_each_element(device, stored(y).size(),
                   kernel::Embed<Stored<T>>{tokens.data, stored(weight.data), stored(y.data), rows, weight.rows, weight.cols});
}
template <Computed T>
void embed_backward(const Device& device, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> gradient_y,
                    Matrix<Accumulated<T>> gradient_weight, bool accumulate) {
  if (gradient_weight.size() == 0) return;
  launch(device, kernel::embed_backward<Stored<T>>, static_cast<unsigned>(gradient_weight.rows), block_threads, tokens.data, tokens.size(),
         rows.first, stored(gradient_y.data), gradient_weight.data, gradient_weight.cols, accumulate);
}

}  // namespace pdp::cuda
