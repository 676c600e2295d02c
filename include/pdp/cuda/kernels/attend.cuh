#pragma once

#include <pdp/core/attention.hpp>
#include <pdp/cuda/kernels/rows.cuh>
#include <pdp/cuda/kernels/softmax.cuh>
#include <pdp/cuda/operations.hpp>

/// Attention. A warp takes a query of a head, or a key, and reads 32 of the others at a time, each lane one. So no matrix of all positions
/// by all positions is in memory, and no two warps write to the same number.
namespace pdp::cuda {

namespace kernel {

/// The values of a vector that a lane adds up: every warp_threads-th one of a tile of columns.
constexpr unsigned values_of_lane = 4;
constexpr Index columns_at_once = values_of_lane * warp_threads;

/// Attention as the kernels see it.
struct Heads {
  Attention how;
  float scale;
  Index rows;

  /// Returns the first value of a position in x or its gradient, and in y or its gradient.
  template <class T>
  __device__ T* in(T* x, Index row, Index position) const {
    return x + (row * how.positions + position) * how.row();
  }
  template <class T>
  __device__ T* out(T* y, Index row, Index position, Index head) const {
    return y + (row * how.positions + position) * how.out() + how.output(head);
  }
  template <class T>
  __device__ T* sums_of(T* sums, Index row, Index position, Index head) const {
    return sums + ((row * how.positions + position) * how.heads + head) * attention_sums;
  }
  template <class T>
  __device__ float dot(const T* a, const T* b) const {
    float sum = 0;
    for (Index i = 0; i < how.width; ++i) sum += as_float(a[i]) * as_float(b[i]);
    return sum;
  }
};

/// Sums of vectors over the lanes of a warp, for a tile of columns.
struct ColumnSums {
  float values[values_of_lane] = {};

  __device__ void scale(float factor) {
    for (float& each : values) each *= factor;
  }
  /// Adds weight times the vector of each of the first `lanes` lanes. vector(lane) returns a pointer to it. `first`: of the tile's columns.
  template <class Vector>
  __device__ void add(float weight, unsigned lanes, Index first, Index width, const Vector& vector) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const float of_lane = __shfl_sync(0xffffffffU, weight, static_cast<int>(lane));
      const auto* const from = vector(lane);
      for (unsigned i = 0; i < values_of_lane; ++i) {
        const Index column = first + i * warp_threads + threadIdx.x % warp_threads;
        if (column < width) values[i] += of_lane * as_float(from[column]);
      }
    }
  }
  template <class T>
  __device__ void store(T* to, Index first, Index width, float factor) const {
    for (unsigned i = 0; i < values_of_lane; ++i) {
      const Index column = first + i * warp_threads + threadIdx.x % warp_threads;
      if (column < width) to[column] = static_cast<T>(values[i] * factor);
    }
  }
};

__device__ inline unsigned lanes_for(Index left) { return left < warp_threads ? static_cast<unsigned>(left) : warp_threads; }

template <class T>
__global__ void __launch_bounds__(block_threads) attend(Heads of, const T* x, T* y, T* sums) {
  const Attention& how = of.how;
  const unsigned own = threadIdx.x % warp_threads;
  for (Index item = first_row(); item < of.rows * how.positions * how.heads; item += rows_at_once()) {
    const Index head = item % how.heads, position = item / how.heads % how.positions, row = item / how.heads / how.positions;
    const Index key_head = head / how.of_key_head(), keys = how.keys(position);
    const T* const query = of.in(x, row, position) + how.query(head);
    for (Index tile = 0; tile < how.width; tile += columns_at_once) {
      ColumnSums columns;
      float largest = 0, sum = 0;
      for (Index first = 0; first < keys; first += warp_threads) {
        const unsigned lanes = lanes_for(keys - first);
        const Index key = first + (own < lanes ? own : 0);  // lanes without a key compute that of the first one
        const float score = of.dot(query, of.in(x, row, key) + how.key(key_head)) * of.scale;
        const float of_chunk = largest_of_warp(score), most = first == 0 || of_chunk > largest || is_nan(of_chunk) ? of_chunk : largest;
        const float factor = first == 0 ? 0 : expf(largest - most), weight = own < lanes ? expf(score - most) : 0;
        sum = sum * factor + sum_of_warp(weight);
        columns.scale(factor);
        columns.add(weight, lanes, tile, how.width, [&](unsigned lane) { return of.in(x, row, first + lane) + how.value(key_head); });
        largest = most;
      }
      columns.store(of.out(y, row, position, head), tile, how.width, 1 / sum);
      if (tile == 0 && own == 0) {
        T* const to = of.sums_of(sums, row, position, head);
        const float logarithm = largest + logf(sum);
        to[0] = static_cast<T>(logarithm);
        to[1] = static_cast<T>(logarithm - as_float(to[0]));
      }
    }
  }
}

/// The weight of a value in an output, and the gradient of the product of query and key.
struct WeightAndGradient {
  float weight, gradient;
};
template <class T>
__device__ inline WeightAndGradient weight_and_gradient(const Heads& of, const T* query, const T* key, const T* value,
                                                        const T* gradient_out, const T* sums, float mean) {
  const float weight = expf(of.dot(query, key) * of.scale - (as_float(sums[0]) + as_float(sums[1])));
  return {weight, weight * (of.dot(gradient_out, value) - mean) * of.scale};
}

/// The gradients of queries.
template <class T>
__global__ void __launch_bounds__(block_threads)
    attend_backward_queries(Heads of, const T* x, const T* y, const T* gradient_y, const T* sums, T* gradient_x) {
  const Attention& how = of.how;
  const unsigned own = threadIdx.x % warp_threads;
  for (Index item = first_row(); item < of.rows * how.positions * how.heads; item += rows_at_once()) {
    const Index head = item % how.heads, position = item / how.heads % how.positions, row = item / how.heads / how.positions;
    const Index key_head = head / how.of_key_head(), keys = how.keys(position);
    const T *const query = of.in(x, row, position) + how.query(head), *const gradient_out = of.out(gradient_y, row, position, head);
    const float mean = of.dot(gradient_out, of.out(y, row, position, head));
    for (Index tile = 0; tile < how.width; tile += columns_at_once) {
      ColumnSums columns;
      for (Index first = 0; first < keys; first += warp_threads) {
        const unsigned lanes = lanes_for(keys - first);
        const T* const at = of.in(x, row, first + (own < lanes ? own : 0));
        const auto found = weight_and_gradient(of, query, at + how.key(key_head), at + how.value(key_head), gradient_out,
                                               of.sums_of(sums, row, position, head), mean);
        columns.add(found.gradient, lanes, tile, how.width, [&](unsigned lane) { return of.in(x, row, first + lane) + how.key(key_head); });
      }
      columns.store(of.in(gradient_x, row, position) + how.query(head), tile, how.width, 1);
    }
  }
}

/// The gradients of keys and values.
template <class T>
__global__ void __launch_bounds__(block_threads)
    attend_backward_keys(Heads of, const T* x, const T* y, const T* gradient_y, const T* sums, T* gradient_x) {
  const Attention& how = of.how;
  const unsigned own = threadIdx.x % warp_threads;
  for (Index item = first_row(); item < of.rows * how.positions * how.key_heads; item += rows_at_once()) {
    const Index key_head = item % how.key_heads, position = item / how.key_heads % how.positions,
                row = item / how.key_heads / how.positions;
    const T* const at = of.in(x, row, position);
    for (Index tile = 0; tile < how.width; tile += columns_at_once) {
      ColumnSums of_key, of_value;
      for (Index head = key_head * how.of_key_head(); head < (key_head + 1) * how.of_key_head(); ++head)
        for (Index first = how.causal ? position : 0; first < how.positions; first += warp_threads) {
          const unsigned lanes = lanes_for(how.positions - first);
          const Index query = first + (own < lanes ? own : 0);
          const T* const gradient_out = of.out(gradient_y, row, query, head);
          const auto found =
              weight_and_gradient(of, of.in(x, row, query) + how.query(head), at + how.key(key_head), at + how.value(key_head),
                                  gradient_out, of.sums_of(sums, row, query, head), of.dot(gradient_out, of.out(y, row, query, head)));
          of_key.add(found.gradient, lanes, tile, how.width, [&](unsigned lane) { return of.in(x, row, first + lane) + how.query(head); });
          of_value.add(found.weight, lanes, tile, how.width, [&](unsigned lane) { return of.out(gradient_y, row, first + lane, head); });
        }
      T* const to = of.in(gradient_x, row, position);
      of_key.store(to + how.key(key_head), tile, how.width, 1);
      of_value.store(to + how.value(key_head), tile, how.width, 1);
    }
  }
}

/// Turns a pair of values.
template <class T>
struct Rotate {
  Attention how;
  Rotation rotation;
  T* x;
  __device__ void operator()(Index i) const {
    const Index half = how.width / 2, heads = how.heads + how.key_heads;
    const Index pair = i % half, head = i / half % heads, position = i / half / heads;  // of all rows
    const double angle =
        rotation.sign() * static_cast<double>(position % how.positions) * pow(rotation.base, rotation.exponent(pair, how.width));
    const auto cosine = static_cast<float>(cos(angle)), sine = static_cast<float>(sin(angle));
    T* const at = x + position * how.row() + how.query_or_key(head) + pair;
    const float first = as_float(at[0]), second = as_float(at[half]);
    at[0] = static_cast<T>(first * cosine - second * sine);
    at[half] = static_cast<T>(first * sine + second * cosine);
  }
};

}  // namespace kernel

template <Computed T>
void attend(const Device& device, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums) {
  if (stored(x).size() > 0)
    launch(device, kernel::attend<Stored<T>>, blocks_for_rows(x.rows * how.positions * how.heads), block_threads,
           kernel::Heads{how, static_cast<float>(how.scale()), x.rows}, stored(x.data), stored(y.data), stored(sums));
}
template <Computed T>
void attend_backward(const Device& device, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                     const T* sums, Matrix<T> gradient_x) {
  if (stored(x).size() == 0) return;
  const kernel::Heads of{how, static_cast<float>(how.scale()), x.rows};
  launch(device, kernel::attend_backward_queries<Stored<T>>, blocks_for_rows(x.rows * how.positions * how.heads), block_threads, of,
         stored(x.data), stored(y.data), stored(gradient_y.data), stored(sums), stored(gradient_x.data));
  launch(device, kernel::attend_backward_keys<Stored<T>>, blocks_for_rows(x.rows * how.positions * how.key_heads), block_threads, of,
         stored(x.data), stored(y.data), stored(gradient_y.data), stored(sums), stored(gradient_x.data));
}
template <Computed T>
void rotate(const Device& device, const Attention& how, const Rotation& rotation, Matrix<T> x) {
  for_each_element(device, x.rows * how.positions * (how.heads + how.key_heads) * (how.width / 2),
                   kernel::Rotate<Stored<T>>{how, rotation, stored(x.data)});
}

}  // namespace pdp::cuda
