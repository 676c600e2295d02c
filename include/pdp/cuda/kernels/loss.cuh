#pragma once

#include <cstdint>
#include <limits>

#include <pdp/core/step_state.hpp>
#include <pdp/cuda/kernels/rows.cuh>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

namespace kernel {

/// The largest number of a row, and its first position. largest_of_row() returns it in each thread of a warp.
struct Largest {
  float value;
  Index at;
};
template <class T>
__device__ inline Largest largest_of_row(const T* x, Index cols) {
  const Index lane = threadIdx.x % warp_threads;
  Largest best{-std::numeric_limits<float>::infinity(), cols};
  for (Index c = lane; c < cols; c += warp_threads)
    if (const float each = as_float(x[c]); each > best.value || best.at == cols) best = {each, c};
  for (int apart = static_cast<int>(warp_threads) / 2; apart > 0; apart /= 2) {
    const float value = __shfl_xor_sync(0xffffffffU, best.value, apart);
    const Index at = __shfl_xor_sync(0xffffffffU, best.at, apart);
    if (at < cols && (best.at == cols || value > best.value || (value == best.value && at < best.at))) best = {value, at};
  }
  return best;
}
/// Returns the sum of exp(x - less) over a row, in each thread of the warp. Adds in double, as on the host.
template <class T>
__device__ inline double exponentials_of_row(const T* x, Index cols, float less) {
  double total = 0;
  for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) total += static_cast<double>(expf(as_float(x[c]) - less));
  return sum_of_warp(total);
}

/// Returns the sum of a row, in each thread of the warp. `weights`: of its elements; null: all are 1.
template <class T>
__device__ inline double sum_of_row(const T* x, Index cols, const float* weights) {
  double total = 0;
  for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads)
    total += (weights != nullptr ? static_cast<double>(weights[c]) : 1) * static_cast<double>(as_float(x[c]));
  return sum_of_warp(total);
}

/// Returns whether a label is a class. The host cannot check a batch that lies on the device, so a wrong class makes the loss NaN.
__device__ inline bool is_class(Index label, Index classes) { return label >= 0 && label < classes; }

template <class T>
struct Logits {
  const T* data;
  Index rows, cols;
  const std::int32_t* classes;
  Index ignored;          // rows of this class do not count
  double smoothing;       // of labels
  Index all_columns;      // those of all ranks
  const float* weights;   // of all classes; null: all are 1
  double sum_of_weights;  // of all classes
  __device__ const T* row(Index r) const { return data + r * cols; }
  /// Return the terms of the vector against which the cross-entropy is computed, as cpu::detail::SmoothLabels does: the second one without
  /// weights, its sum over all classes, and the first one at the label.
  __device__ double of_class() const { return smoothing > 0 ? smoothing / static_cast<double>(all_columns) : 0; }
  __device__ double of_classes() const { return weights != nullptr ? of_class() * sum_of_weights : smoothing; }
  __device__ double of_label(Index label) const {
    if (weights == nullptr) return 1 - smoothing;
    return is_class(label, all_columns) ? (1 - smoothing) * static_cast<double>(weights[label]) : std::numeric_limits<double>::quiet_NaN();
  }
};

/// The factor of a row's softmax in the gradient, and the numbers to subtract from all elements (multiplied by their weights, if there are
/// any) and from that of the class.
struct GradientScales {
  float row, of_class, of_label;
  const float* weights;  // of the row's columns; null: all are 1
  template <class T>
  __device__ GradientScales(const Logits<T>& logits, Index label, Index first, double row_scale)
      : row{static_cast<float>(row_scale * (logits.of_label(label) + logits.of_classes()))},
        of_class{static_cast<float>(row_scale * logits.of_class())},
        of_label{static_cast<float>(row_scale * logits.of_label(label))},
        weights{logits.weights != nullptr ? logits.weights + first : nullptr} {}
  __device__ float of_column(Index column) const { return weights != nullptr ? of_class * weights[column] : of_class; }
};

template <class T>
__global__ void __launch_bounds__(block_threads)
    softmax_cross_entropy(Logits<T> logits, const double* row_scale, T* gradient, LossSums* sums, Partials partials) {
  const Index lane = threadIdx.x % warp_threads;
  double loss = 0, correct = 0;
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const T* const x = logits.row(r);
    const Index label = logits.classes[r];
    if (label == logits.ignored) {
      clear_row(gradient, r, logits.cols);
      continue;
    }
    const Largest largest = largest_of_row(x, logits.cols);
    const double total = exponentials_of_row(x, logits.cols, largest.value);
    const double sum = logits.smoothing > 0 ? sum_of_row(x, logits.cols, logits.weights) : 0;
    if (gradient != nullptr) {
      const GradientScales scales{logits, label, 0, *row_scale};
      const float factor = scales.row / static_cast<float>(total);
      for (Index c = lane; c < logits.cols; c += warp_threads) {
        const float each = expf(as_float(x[c]) - largest.value) * factor - scales.of_column(c);
        gradient[r * logits.cols + c] = static_cast<T>(c == label ? each - scales.of_label : each);
      }
    }
    if (lane == 0) {
      const double of_label = logits.of_label(label), of_all = of_label + logits.of_classes();
      loss += is_class(label, logits.cols)
                  ? of_all * (log(total) + static_cast<double>(largest.value)) - of_label * static_cast<double>(as_float(x[label]))
                  : std::numeric_limits<double>::quiet_NaN();
      if (logits.smoothing > 0) loss -= logits.of_class() * sum;
      correct += largest.at == label ? 1 : 0;
    }
  }
  add_up(loss, correct, partials, &sums->loss, &sums->correct);
}

/// Does the same as cpu::softmax_part. `numbers`: those of a row of `part`.
template <class T>
__global__ void __launch_bounds__(block_threads) softmax_part(Logits<T> logits, Index first, float* part, Index numbers) {
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const T* const x = logits.row(r);
    const Index wanted = logits.classes[r], label = wanted - first;
    const Largest largest = largest_of_row(x, logits.cols);
    const double total = exponentials_of_row(x, logits.cols, largest.value);
    const double sum = logits.smoothing > 0 ? sum_of_row(x, logits.cols, logits.weights != nullptr ? logits.weights + first : nullptr) : 0;
    if (threadIdx.x % warp_threads > 0) continue;
    const bool rules_all_out = largest.value == -std::numeric_limits<float>::infinity();
    const bool is_here = label >= 0 && label < logits.cols;
    float* const known = part + r * numbers;
    known[0] = largest.value;
    known[1] = rules_all_out ? 0 : static_cast<float>(total - 1);
    known[2] = is_here ? as_float(x[label]) : is_class(wanted, logits.all_columns) ? 0 : std::numeric_limits<float>::quiet_NaN();
    known[3] = is_here && largest.at == label ? 1 : 0;
    if (numbers > 4) known[4] = static_cast<float>(sum);
  }
}

/// Does the same as cpu::softmax_cross_entropy_of_parts. `parts`: the parts of `ranks` ranks, in rank order,
/// with `numbers` numbers a row.
template <class T>
__global__ void __launch_bounds__(block_threads)
    softmax_cross_entropy_of_parts(Logits<T> logits, Index first, const float* parts, Index numbers, Index ranks, const double* row_scale,
                                   T* gradient, LossSums* sums, Partials partials) {
  const Index lane = threadIdx.x % warp_threads;
  double loss = 0, correct = 0;
  for (Index r = first_row(); r < logits.rows; r += rows_at_once()) {
    const Index label = logits.classes[r];
    if (label == logits.ignored) {
      clear_row(gradient, r, logits.cols);
      continue;
    }
    const float* best = parts + r * numbers;
    for (Index rank = 1; rank < ranks; ++rank)
      if (const float* const other = parts + (rank * logits.rows + r) * numbers; other[0] > best[0]) best = other;
    double total = 0, logit = 0, sum = 0;
    for (Index rank = 0; rank < ranks; ++rank) {
      const float* const known = parts + (rank * logits.rows + r) * numbers;
      total += (1 + static_cast<double>(known[1])) * exp(static_cast<double>(known[0]) - static_cast<double>(best[0]));
      logit += static_cast<double>(known[2]);
      if (logits.smoothing > 0) sum += static_cast<double>(known[4]);
    }
    if (gradient != nullptr) {
      const GradientScales scales{logits, label, first, *row_scale};
      const float factor = scales.row / static_cast<float>(total);
      for (Index c = lane; c < logits.cols; c += warp_threads) {
        const float each = expf(as_float(logits.row(r)[c]) - best[0]) * factor - scales.of_column(c);
        gradient[r * logits.cols + c] = static_cast<T>(c + first == label ? each - scales.of_label : each);
      }
    }
    if (lane == 0) {
      const double of_label = logits.of_label(label), of_all = of_label + logits.of_classes();
      loss += of_all * (log(total) + static_cast<double>(best[0])) - of_label * logit;
      if (logits.smoothing > 0) loss -= logits.of_class() * sum;
      correct += best[3] != 0 ? 1 : 0;
    }
  }
  add_up(loss, correct, partials, &sums->loss, &sums->correct);
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    squared_error(const T* output, const float* target, Index rows, Index cols, const double* row_scale, T* gradient, LossSums* sums,
                  bool ignores_nan, Partials partials) {
  const float width = static_cast<float>(cols), factor = 2 * static_cast<float>(*row_scale) / width;
  double loss = 0;
  for (Index r = first_row(); r < rows; r += rows_at_once()) {
    if (ignores_nan && has_nan(target + r * cols, cols)) {
      clear_row(gradient, r, cols);
      continue;
    }
    float squares = 0;
    for (Index c = threadIdx.x % warp_threads; c < cols; c += warp_threads) {
      const float error = as_float(output[r * cols + c]) - target[r * cols + c];
      squares += error * error;
      if (gradient != nullptr) gradient[r * cols + c] = static_cast<T>(error * factor);
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % warp_threads == 0) loss += static_cast<double>(squares / width);
  }
  add_up(loss, 0, partials, &sums->loss, nullptr);
}

template <Computed T>
Logits<Stored<T>> logits_of(Matrix<const T> logits, std::span<const std::int32_t> classes, Index ignored, double smoothing, Index columns,
                            const ClassWeights& weights) {
  return {stored(logits.data), logits.rows, logits.cols, classes.data(), ignored, smoothing, columns, weights.of_class.data(), weights.sum};
}

}  // namespace kernel

template <Computed T>
void softmax_cross_entropy(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored, double smoothing, const ClassWeights& weights) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_cross_entropy<Stored<T>>, blocks_for_rows(logits.rows), block_threads,
         kernel::logits_of(logits, classes, ignored, smoothing, logits.cols, weights), scale, stored(gradient.data), sums,
         device.state().partials());
}
template <Computed T>
void softmax_part(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<Accumulated<T>> part, Index ignored, double smoothing, const ClassWeights& weights) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_part<Stored<T>>, blocks_for_rows(logits.rows), block_threads,
         kernel::logits_of(logits, classes, ignored, smoothing, columns, weights), first, part.data, part.cols);
}
template <Computed T>
void softmax_cross_entropy_of_parts(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const Accumulated<T>> parts, const double* scale, Matrix<T> gradient, LossSums* sums,
                                    Index ignored, double smoothing, Index columns, const ClassWeights& weights) {
  if (logits.rows == 0) return;
  launch(device, kernel::softmax_cross_entropy_of_parts<Stored<T>>, blocks_for_rows(logits.rows), block_threads,
         kernel::logits_of(logits, classes, ignored, smoothing, columns, weights), first, parts.data, parts.cols, parts.rows / logits.rows,
         scale, stored(gradient.data), sums, device.state().partials());
}
template <Computed T>
void squared_error(const Device& device, Matrix<const T> output, Matrix<const Accumulated<T>> target, const double* scale,
                   Matrix<T> gradient, LossSums* sums, bool ignores_nan) {
  if (output.rows == 0) return;
  launch(device, kernel::squared_error<Stored<T>>, blocks_for_rows(output.rows), block_threads, stored(output.data), target.data,
         output.rows, output.cols, scale, stored(gradient.data), sums, ignores_nan, device.state().partials());
}

}  // namespace pdp::cuda
