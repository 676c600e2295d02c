#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/cuda/kernels/launch.cuh>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

namespace kernel {

/// Calls body(i) for i from 0 to count - 1.
template <class Body>
__global__ void each(Index count, Body body) {
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += Index{gridDim.x} * blockDim.x) body(i);
}

/// Converts a value to the type of all arithmetic: float, for 16-bit types, too.
template <class T>
__device__ inline float as_float(T value) {
  return static_cast<float>(value);
}

template <class T>
struct Relu {
  const T* x;
  T* y;
  __device__ void operator()(Index i) const { y[i] = 0 > as_float(x[i]) ? T{} : x[i]; }  // NaN stays NaN
};
template <class T>
struct ReluBackward {
  const T *y, *gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const { gradient_x[i] = as_float(y[i]) > 0 ? gradient_y[i] : T{}; }
};
template <class T>
struct Tanh {
  const T* x;
  T* y;
  __device__ void operator()(Index i) const { y[i] = static_cast<T>(tanhf(as_float(x[i]))); }
};
template <class T>
struct TanhBackward {
  const T *y, *gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const float tangent = as_float(y[i]);
    gradient_x[i] = static_cast<T>(as_float(gradient_y[i]) * (1 - tangent * tangent));
  }
};
template <class T>
struct Drop {
  Pass pass;
  float probability;
  const T* x;
  T* y;
  Index cols;
  __device__ void operator()(Index i) const {
    const float number = pass.row_generator().template uniform<float>(i / cols, i % cols);
    y[i] = static_cast<T>(number < probability ? 0.0f : as_float(x[i]) * (1 / (1 - probability)));
  }
};
template <class T>
struct Add {
  const T *left, *right;
  T* out;
  __device__ void operator()(Index i) const { out[i] = static_cast<T>(as_float(left[i]) + as_float(right[i])); }
};
template <class T>
struct AddRow {
  const T* row;
  T* rows;
  Index cols;
  __device__ void operator()(Index i) const { rows[i] = static_cast<T>(as_float(rows[i]) + as_float(row[i % cols])); }
};
template <class T>
struct CopyColumns {
  const T* from;
  T* to;
  Index from_cols, to_cols, columns;
  __device__ void operator()(Index i) const { to[i / columns * to_cols + i % columns] = from[i / columns * from_cols + i % columns]; }
};
template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  __device__ void operator()(Index i) const { to[i] = static_cast<To>(as_float(from[i])); }
};
template <class T>
struct FillUniform {
  random::Key key;
  double bound;
  random::Elements elements;
  T* values;
  __device__ void operator()(Index i) const { values[i] = static_cast<T>(random::uniform_between<float>(key, bound, elements[i])); }
};

}  // namespace kernel

/// Calls body(i) for i from 0 to count - 1, in any order.
template <class Body>
void for_each_element(const Device& device, cudaStream_t stream, Index count, const Body& body) {
  constexpr unsigned most_blocks = 8 * 1024;
  if (count > 0)
    launch_on(device.index(), stream, kernel::each<Body>, blocks_for(count, block_threads, most_blocks), block_threads, count, body);
}
template <class Body>
void for_each_element(const Device& device, Index count, const Body& body) {
  for_each_element(device, device.state().stream(), count, body);
}
/// Does the same for a body(i) that reads only elements of `left` and `right` and writes one of `out`. May overlap with gradients of
/// weights.
template <class T, class Body>
void for_each_element(const Device& device, Matrix<const T> left, Matrix<const T> right, Matrix<T> out, const Body& body) {
  for_each_element(device, device.state().stream({bytes_of(left), bytes_of(right)}, {bytes_of(out)}), stored(out).size(), body);
}

template <Computed T>
void relu(const Device& device, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::Relu<Stored<T>>{stored(x.data), stored(y.data)});
}
template <Computed T>
void relu_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(device, y, gradient_y, gradient_x,
                   kernel::ReluBackward<Stored<T>>{stored(y.data), stored(gradient_y.data), stored(gradient_x.data)});
}
template <Computed T>
void hyperbolic_tangent(const Device& device, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::Tanh<Stored<T>>{stored(x.data), stored(y.data)});
}
template <Computed T>
void hyperbolic_tangent_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(device, y, gradient_y, gradient_x,
                   kernel::TanhBackward<Stored<T>>{stored(y.data), stored(gradient_y.data), stored(gradient_x.data)});
}
template <Computed T>
void drop(const Device& device, const Pass& pass, float probability, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::Drop<Stored<T>>{pass, probability, stored(x.data), stored(y.data), x.cols});
}
template <Computed T>
void add(const Device& device, Matrix<const T> left, Matrix<const T> right, Matrix<T> out) {
  for_each_element(device, left, right, out, kernel::Add<Stored<T>>{stored(left.data), stored(right.data), stored(out.data)});
}
template <Computed T>
void add_row(const Device& device, const T* row, Matrix<T> rows) {
  for_each_element(device, stored(rows).size(), kernel::AddRow<Stored<T>>{stored(row), stored(rows.data), rows.cols});
}
template <Computed T>
void copy_columns(const Device& device, Matrix<const T> from, Index first, Matrix<T> to, Index to_first, Index columns) {
  for_each_element(device, from.rows * columns,
                   kernel::CopyColumns<Stored<T>>{stored(from.data) + first, stored(to.data) + to_first, from.cols, to.cols, columns});
}
template <Computed T>
void convert(const Device& device, Matrix<const float> from, Matrix<T> to) requires(sizeof(T) == 2) {
  for_each_element(device, stored(to).size(), kernel::Convert<float, Stored<T>>{from.data, stored(to.data)});
}
template <Computed T>
void convert(const Device& device, Matrix<const T> from, Matrix<float> to) requires(sizeof(T) == 2) {
  for_each_element(device, stored(to).size(), kernel::Convert<Stored<T>, float>{stored(from.data), to.data});
}
template <Computed T>
void fill_uniform(const Device& device, random::Key key, double bound, const random::Elements& elements, T* values, Index count) {
  for_each_element(device, count, kernel::FillUniform<Stored<T>>{key, bound, elements, stored(values)});
}

}  // namespace pdp::cuda
