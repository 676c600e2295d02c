#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/random.hpp>
#include <pdp/cuda/kernels/launch.cuh>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

namespace kernel {

/// body(i) for i from 0 to count - 1.
template <class Body>
__global__ void each(Index count, Body body) {
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += Index{gridDim.x} * blockDim.x) body(i);
}

struct Relu {
  const float* x;
  float* y;
  __device__ void operator()(Index i) const { y[i] = 0 > x[i] ? 0 : x[i]; }  // so that what is no number stays none
};
struct ReluBackward {
  const float *y, *gradient_y;
  float* gradient_x;
  __device__ void operator()(Index i) const { gradient_x[i] = y[i] > 0 ? gradient_y[i] : 0; }
};
struct Tanh {
  const float* x;
  float* y;
  __device__ void operator()(Index i) const { y[i] = tanhf(x[i]); }
};
struct TanhBackward {
  const float *y, *gradient_y;
  float* gradient_x;
  __device__ void operator()(Index i) const { gradient_x[i] = gradient_y[i] * (1 - y[i] * y[i]); }
};
struct Add {
  const float *left, *right;
  float* out;
  __device__ void operator()(Index i) const { out[i] = left[i] + right[i]; }
};
struct AddRow {
  const float* row;
  float* rows;
  Index cols;
  __device__ void operator()(Index i) const { rows[i] += row[i % cols]; }
};
template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  __device__ void operator()(Index i) const { to[i] = static_cast<To>(static_cast<float>(from[i])); }
};
struct FillUniform {
  random::Key key;
  double bound;
  random::Elements elements;
  float* values;
  __device__ void operator()(Index i) const { values[i] = random::uniform_between<float>(key, bound, elements[i]); }
};

}  // namespace kernel

/// body(i) for i from 0 to count - 1, in no order.
template <class Body>
void for_each_element(const Device& device, Index count, const Body& body) {
  constexpr unsigned most_blocks = 8 * 1024;
  if (count > 0) launch(device, kernel::each<Body>, blocks_for(count, block_threads, most_blocks), block_threads, count, body);
}

void relu(const Device& device, Matrix<const float> x, Matrix<float> y) {
  for_each_element(device, y.size(), kernel::Relu{x.data, y.data});
}
void relu_backward(const Device& device, Matrix<const float> y, Matrix<const float> gradient_y, Matrix<float> gradient_x) {
  for_each_element(device, y.size(), kernel::ReluBackward{y.data, gradient_y.data, gradient_x.data});
}
void hyperbolic_tangent(const Device& device, Matrix<const float> x, Matrix<float> y) {
  for_each_element(device, y.size(), kernel::Tanh{x.data, y.data});
}
void hyperbolic_tangent_backward(const Device& device, Matrix<const float> y, Matrix<const float> gradient_y, Matrix<float> gradient_x) {
  for_each_element(device, y.size(), kernel::TanhBackward{y.data, gradient_y.data, gradient_x.data});
}
void add(const Device& device, Matrix<const float> left, Matrix<const float> right, Matrix<float> out) {
  for_each_element(device, out.size(), kernel::Add{left.data, right.data, out.data});
}
void add_row(const Device& device, const float* row, Matrix<float> rows) {
  if (!device.state().add_row(row, rows)) for_each_element(device, rows.size(), kernel::AddRow{row, rows.data, rows.cols});
}
void convert(const Device& device, Matrix<const float> from, Matrix<BFloat16> to) {
  for_each_element(device, to.size(), kernel::Convert<float, BFloat16>{from.data, to.data});
}
void convert(const Device& device, Matrix<const BFloat16> from, Matrix<float> to) {
  for_each_element(device, to.size(), kernel::Convert<BFloat16, float>{from.data, to.data});
}
void fill_uniform(const Device& device, random::Key key, double bound, const random::Elements& elements, std::span<float> values) {
  for_each_element(device, static_cast<Index>(values.size()), kernel::FillUniform{key, bound, elements, values.data()});
}

}  // namespace pdp::cuda
