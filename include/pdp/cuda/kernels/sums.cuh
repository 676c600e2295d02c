#pragma once

#include <pdp/core/step.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

namespace kernel {

/// The sum over a warp, in every thread of it.
template <class T>
__device__ inline T sum_of_warp(T value) {
  for (int apart = static_cast<int>(warp_threads) / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffU, value, apart);
  return value;
}

/// The sum over a block of block_threads, in its first thread.
__device__ inline double sum_of_block(double value) {
  __shared__ double of_warps[block_threads / warp_threads];
  value = sum_of_warp(value);
  __syncthreads();  // what was here before has been read
  if (threadIdx.x % warp_threads == 0) of_warps[threadIdx.x / warp_threads] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (unsigned warp = 0; warp < block_threads / warp_threads; ++warp) sum += of_warps[warp];
  return sum;
}

/// Adds to *first and *second what the threads of all blocks have found. The last block to arrive adds up what each has, in the order of
/// blocks: so the sum is the same in every run. `second` may be null.
__device__ inline void add_up(double found_first, double found_second, Partials partials, double* first, double* second) {
  const double of_block_first = sum_of_block(found_first), of_block_second = second != nullptr ? sum_of_block(found_second) : 0;
  __shared__ unsigned is_last;
  if (threadIdx.x == 0) {
    partials.values[blockIdx.x * Partials::numbers] = of_block_first;
    partials.values[blockIdx.x * Partials::numbers + 1] = of_block_second;
    __threadfence();
    is_last = atomicAdd(partials.arrived, 1U) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (is_last == 0) return;
  __threadfence();
  double sum_first = 0, sum_second = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += block_threads) {
    sum_first += __ldcg(&partials.values[block * Partials::numbers]);
    sum_second += __ldcg(&partials.values[block * Partials::numbers + 1]);
  }
  sum_first = sum_of_block(sum_first);
  sum_second = second != nullptr ? sum_of_block(sum_second) : 0;
  if (threadIdx.x == 0) {
    *first += sum_first;
    if (second != nullptr) *second += sum_second;
    *partials.arrived = 0;
  }
}

__global__ void __launch_bounds__(block_threads) sum_of_squares(const float* values, Index count, double* sum, Partials partials) {
  double found = 0;
  for (Index i = Index{blockIdx.x} * block_threads + threadIdx.x; i < count; i += Index{gridDim.x} * block_threads)
    found += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  add_up(found, 0, partials, sum, nullptr);
}

/// A block has warp_threads columns, and adds up every so many rows in each of its warps.
constexpr unsigned row_threads = 8;
template <class T>
__global__ void sum_rows(const T* rows, Index count, Index cols, float* sums, bool accumulate) {
  __shared__ float of_rows[row_threads][warp_threads];
  const Index col = Index{blockIdx.x} * warp_threads + threadIdx.x;
  float found = 0;
  if (col < cols)
    for (Index row = threadIdx.y; row < count; row += row_threads) found += as_float(rows[row * cols + col]);
  of_rows[threadIdx.y][threadIdx.x] = found;
  __syncthreads();
  if (threadIdx.y > 0 || col >= cols) return;
  float sum = accumulate ? sums[col] : 0;
  for (unsigned each = 0; each < row_threads; ++each) sum += of_rows[each][threadIdx.x];
  sums[col] = sum;
}

}  // namespace kernel

void sum_of_squares(const Device& device, Matrix<const float> values, double* sum) {
  if (values.size() == 0) return;
  constexpr unsigned most_blocks = 512;
  static_assert(most_blocks <= Partials::most_blocks);
  launch(device, kernel::sum_of_squares, blocks_for(values.size(), 4 * block_threads, most_blocks), block_threads, values.data,
         values.size(), sum, device.state().partials());
}

template <Computed T>
void sum_rows(const Device& device, Matrix<const T> rows, Accumulated<T>* sums, bool accumulate) {
  if (rows.cols == 0 || (!accumulate && device.state().sum_rows(rows, sums))) return;
  launch(device, kernel::sum_rows<Stored<T>>, static_cast<unsigned>((rows.cols + warp_threads - 1) / warp_threads),
         dim3{warp_threads, kernel::row_threads}, stored(rows.data), rows.rows, rows.cols, sums, accumulate);
}

}  // namespace pdp::cuda
