#pragma once

#include <algorithm>

#include <pdp/cuda/kernels/rows.cuh>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

namespace kernel {

__global__ void __launch_bounds__(block_threads) sum_of_squares(const float* values, Index count, double* sum, Partials partials) {
  double found = 0;
  for (Index i = Index{blockIdx.x} * block_threads + threadIdx.x; i < count; i += Index{gridDim.x} * block_threads)
    found += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  add_up(found, 0, partials, sum, nullptr);
}

/// Each block takes warp_threads columns of one of `slices` slices of the rows, and each of its warps adds up every row_threads-th row. The
/// last block to arrive adds the sums of the slices, in their order.
constexpr unsigned row_threads = 8;
template <class T>
__global__ void sum_rows(const T* rows, Index count, Index cols, float* sums, bool accumulate, unsigned slices, Partials partials) {
  __shared__ float of_rows[row_threads][warp_threads];
  const unsigned column_blocks = gridDim.x / slices, slice = blockIdx.x / column_blocks;
  const Index col = Index{blockIdx.x % column_blocks} * warp_threads + threadIdx.x, of_slice = (count + slices - 1) / slices,
              begin = slice * of_slice, end = begin + of_slice < count ? begin + of_slice : count;
  float found = 0;
  if (col < cols)
    for (Index row = begin + threadIdx.y; row < end; row += row_threads) found += as_float(rows[row * cols + col]);
  of_rows[threadIdx.y][threadIdx.x] = found;
  __syncthreads();
  float* const of_slices = reinterpret_cast<float*>(partials.values);
  if (threadIdx.y == 0 && col < cols) {
    float sum = accumulate && slices == 1 ? sums[col] : 0;
    for (unsigned each = 0; each < row_threads; ++each) sum += of_rows[each][threadIdx.x];
    (slices == 1 ? sums[col] : of_slices[slice * cols + col]) = sum;
  }
  const unsigned thread = threadIdx.y * warp_threads + threadIdx.x;
  if (slices == 1 || !arrives_last(partials, thread)) return;
  for (Index each = thread; each < cols; each += row_threads * warp_threads) {
    float sum = accumulate ? sums[each] : 0;
    for (unsigned part = 0; part < slices; ++part) sum += __ldcg(&of_slices[part * cols + each]);
    sums[each] = sum;
  }
  if (thread == 0) *partials.arrived = 0;
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
  if (rows.cols == 0) return;
  // As many slices as `partials` has room for, each with enough rows to be worth a block.
  constexpr Index room = Partials::most_blocks * Partials::numbers * sizeof(double) / sizeof(float), least_rows = 16 * kernel::row_threads;
  const auto slices = static_cast<unsigned>(std::max<Index>(1, std::min(room / rows.cols, rows.rows / least_rows)));
  launch_on(device.index(), device.state().stream({bytes_of(rows)}, {bytes_of(Matrix<Accumulated<T>>{sums, 1, rows.cols})}),
            kernel::sum_rows<Stored<T>>, slices * static_cast<unsigned>((rows.cols + warp_threads - 1) / warp_threads),
            dim3{warp_threads, kernel::row_threads}, stored(rows.data), rows.rows, rows.cols, sums, accumulate, slices,
            device.state().partials());
}

}  // namespace pdp::cuda
