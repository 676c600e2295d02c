#pragma once

#include <pdp/core/finite.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>

namespace pdp::cuda {

namespace kernel {

// Functions of kernels that take a row with each warp, and of kernels that add up. A .cu file of a program may include them, too.

/// Returns the sum over a warp, in each of its threads.
template <class T>
__device__ inline T sum_of_warp(T value) {
  for (int apart = static_cast<int>(warp_threads) / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffU, value, apart);
  return value;
}

/// Returns the sum over a block of block_threads threads, in its first thread.
__device__ inline double sum_of_block(double value) {
  __shared__ double of_warps[block_threads / warp_threads];
  value = sum_of_warp(value);
  __syncthreads();  // the previous call has read of_warps
  if (threadIdx.x % warp_threads == 0) of_warps[threadIdx.x / warp_threads] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (unsigned warp = 0; warp < block_threads / warp_threads; ++warp) sum += of_warps[warp];
  return sum;
}

/// Returns whether this block arrives last. If so, it may read the results of the other blocks in `partials`, and must reset `arrived`. All
/// threads of a block make this call, with their number in `thread`.
__device__ inline bool arrives_last(Partials partials, unsigned thread) {
  __shared__ unsigned is_last;
  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(partials.arrived, 1U) == gridDim.x - 1 ? 1 : 0;
  __syncthreads();
  __threadfence();
  return is_last != 0;
}

/// Adds the sums over the threads of all blocks to *first and *second. The last block to arrive adds the blocks' sums in a fixed order, so
/// the result is the same in every run. `second` may be null.
__device__ inline void add_up(double found_first, double found_second, Partials partials, double* first, double* second) {
  const double of_block_first = sum_of_block(found_first), of_block_second = second != nullptr ? sum_of_block(found_second) : 0;
  if (threadIdx.x == 0) {
    partials.values[blockIdx.x * Partials::numbers] = of_block_first;
    partials.values[blockIdx.x * Partials::numbers + 1] = of_block_second;
  }
  if (!arrives_last(partials, threadIdx.x)) return;
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

/// Sets a row of a gradient to zero, in the threads of a warp. Does nothing without a gradient.
template <class T>
__device__ inline void clear_row(T* gradient, Index row, Index cols) {
  if (gradient == nullptr) return;
  for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) gradient[row * cols + c] = static_cast<T>(0.0f);
}

/// first_row() returns the first row of a warp, rows_at_once() the distance to its next row.
__device__ inline Index first_row() { return (Index{blockIdx.x} * block_threads + threadIdx.x) / warp_threads; }
__device__ inline Index rows_at_once() { return Index{gridDim.x} * (block_threads / warp_threads); }

/// Returns whether a row has a NaN, in each thread of the warp.
__device__ inline bool has_nan(const float* row, Index cols) {
  int found = 0;
  for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) found += is_nan(row[c]) ? 1 : 0;
  return sum_of_warp(found) > 0;
}

}  // namespace kernel

/// Returns the number of blocks for one warp a row.
inline unsigned blocks_for_rows(Index rows) { return blocks_for(rows, block_threads / warp_threads, Partials::most_blocks); }

}  // namespace pdp::cuda
