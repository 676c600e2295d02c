#pragma once

#include <cstdint>
#include <limits>

#include <pdp/cuda/kernels/sums.cuh>

namespace pdp::cuda {

namespace kernel {

/// The largest number of a row, and where it stands first; in every thread of the warp that looks.
struct Largest {
  float value;
  Index at;
};
__device__ inline Largest largest_of_row(const float* x, Index cols) {
  const Index lane = threadIdx.x % warp_threads;
  Largest best{-std::numeric_limits<float>::infinity(), cols};
  for (Index c = lane; c < cols; c += warp_threads)
    if (x[c] > best.value || best.at == cols) best = {x[c], c};
  for (int apart = static_cast<int>(warp_threads) / 2; apart > 0; apart /= 2) {
    const float value = __shfl_xor_sync(0xffffffffU, best.value, apart);
    const Index at = __shfl_xor_sync(0xffffffffU, best.at, apart);
    if (at < cols && (best.at == cols || value > best.value || (value == best.value && at < best.at))) best = {value, at};
  }
  return best;
}
/// The sum of exp(x - less), in double as on the host; in every thread of the warp.
__device__ inline double exponentials_of_row(const float* x, Index cols, float less) {
  double total = 0;
  for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) total += static_cast<double>(expf(x[c] - less));
  return sum_of_warp(total);
}

struct Logits {
  const float* data;
  Index rows, cols;
  const std::int32_t* classes;
  __device__ const float* row(Index r) const { return data + r * cols; }
};

/// Which row a warp takes first, and how many rows further its next one is.
__device__ inline Index first_row() { return (Index{blockIdx.x} * block_threads + threadIdx.x) / warp_threads; }
__device__ inline Index rows_at_once() { return Index{gridDim.x} * (block_threads / warp_threads); }

__global__ void __launch_bounds__(block_threads)
    softmax_cross_entropy(Logits logits, const double* row_scale, float* gradient, LossSums* sums, Partials partials) {
  const Index lane = threadIdx.x % warp_threads;
  double loss = 0, correct = 0;
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const float* const x = logits.row(r);
    const Index label = logits.classes[r];
    const Largest largest = largest_of_row(x, logits.cols);
    const double total = exponentials_of_row(x, logits.cols, largest.value);
    if (gradient != nullptr) {
      const float scale = static_cast<float>(*row_scale), factor = scale / static_cast<float>(total);
      for (Index c = lane; c < logits.cols; c += warp_threads) {
        const float softmax = expf(x[c] - largest.value) * factor;
        gradient[r * logits.cols + c] = c == label ? softmax - scale : softmax;
      }
    }
    if (lane == 0) {
      loss += log(total) + static_cast<double>(largest.value) - static_cast<double>(x[label]);
      correct += largest.at == label ? 1 : 0;
    }
  }
  add_up(loss, correct, partials, &sums->loss, &sums->correct);
}

/// As host::softmax_part.
__global__ void __launch_bounds__(block_threads) softmax_part(Logits logits, Index first, float* part) {
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const float* const x = logits.row(r);
    const Index label = logits.classes[r] - first;
    const Largest largest = largest_of_row(x, logits.cols);
    const double total = exponentials_of_row(x, logits.cols, largest.value);
    if (threadIdx.x % warp_threads > 0) continue;
    const bool rules_all_out = largest.value == -std::numeric_limits<float>::infinity();
    const bool is_here = label >= 0 && label < logits.cols;
    float* const known = part + r * 4;
    known[0] = largest.value;
    known[1] = rules_all_out ? 0 : static_cast<float>(total - 1);
    known[2] = is_here ? x[label] : 0;
    known[3] = is_here && largest.at == label ? 1 : 0;
  }
}

/// As host::softmax_cross_entropy_of_parts. `parts`: of `ranks`.
__global__ void __launch_bounds__(block_threads)
    softmax_cross_entropy_of_parts(Logits logits, Index first, const float* parts, Index ranks, const double* row_scale, float* gradient,
                                   LossSums* sums, Partials partials) {
  const Index lane = threadIdx.x % warp_threads;
  double loss = 0, correct = 0;
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const Index label = logits.classes[r];
    const float* best = parts + r * 4;
    for (Index rank = 1; rank < ranks; ++rank)
      if (const float* const other = parts + (rank * logits.rows + r) * 4; other[0] > best[0]) best = other;
    double total = 0, logit = 0;
    for (Index rank = 0; rank < ranks; ++rank) {
      const float* const known = parts + (rank * logits.rows + r) * 4;
      total += (1 + static_cast<double>(known[1])) * exp(static_cast<double>(known[0]) - static_cast<double>(best[0]));
      logit += static_cast<double>(known[2]);
    }
    if (gradient != nullptr) {
      const float scale = static_cast<float>(*row_scale), factor = scale / static_cast<float>(total);
      for (Index c = lane; c < logits.cols; c += warp_threads) {
        const float softmax = expf(logits.row(r)[c] - best[0]) * factor;
        gradient[r * logits.cols + c] = c + first == label ? softmax - scale : softmax;
      }
    }
    if (lane == 0) {
      loss += log(total) + static_cast<double>(best[0]) - logit;
      correct += best[3] != 0 ? 1 : 0;
    }
  }
  add_up(loss, correct, partials, &sums->loss, &sums->correct);
}

__global__ void __launch_bounds__(block_threads)
    squared_error(const float* output, const float* target, Index rows, Index cols, const double* row_scale, float* gradient,
                  LossSums* sums, Partials partials) {
  const float width = static_cast<float>(cols), factor = 2 * static_cast<float>(*row_scale) / width;
  double loss = 0;
  for (Index r = first_row(); r < rows; r += rows_at_once()) {
    float squares = 0;
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) {
      const float error = output[r * cols + c] - target[r * cols + c];
      squares += error * error;
      if (gradient != nullptr) gradient[r * cols + c] = error * factor;
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % warp_threads == 0) loss += static_cast<double>(squares / width);
  }
  add_up(loss, 0, partials, &sums->loss, nullptr);
}

}  // namespace kernel

/// A warp for each row.
inline unsigned blocks_for_rows(Index rows) { return blocks_for(rows, block_threads / warp_threads, Partials::most_blocks); }

void softmax_cross_entropy(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, const double* scale,
                           Matrix<float> gradient, LossSums* sums) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_cross_entropy, blocks_for_rows(logits.rows), block_threads,
         kernel::Logits{logits.data, logits.rows, logits.cols, classes.data()}, scale, gradient.data, sums, device.state().partials());
}
void softmax_part(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, Index first, Index,
                  Matrix<float> part) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_part, blocks_for_rows(logits.rows), block_threads,
         kernel::Logits{logits.data, logits.rows, logits.cols, classes.data()}, first, part.data);
}
void softmax_cross_entropy_of_parts(const Device& device, Matrix<const float> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const float> parts, const double* scale, Matrix<float> gradient, LossSums* sums) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_cross_entropy_of_parts, blocks_for_rows(logits.rows), block_threads,
         kernel::Logits{logits.data, logits.rows, logits.cols, classes.data()}, first, parts.data, parts.rows / logits.rows, scale,
         gradient.data, sums, device.state().partials());
}
void squared_error(const Device& device, Matrix<const float> output, Matrix<const float> target, const double* scale,
                   Matrix<float> gradient, LossSums* sums) {
  if (output.rows == 0) return;
  launch(device, kernel::squared_error, blocks_for_rows(output.rows), block_threads, output.data, target.data, output.rows, output.cols,
         scale, gradient.data, sums, device.state().partials());
}

}  // namespace pdp::cuda
