#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/view.hpp>

namespace pdp {

/// What a loss finds in the rows it is given. Sums, not means, so that shares of a batch add up.
struct LossSums {
  double loss = 0;
  double correct = 0;  // rows whose largest output is that of their class; 0 where there are no classes
};

/// Where a model computes. A device gives the bodies of these free operations, found by its own namespace; layers call them and know
/// nothing else of it.
///
/// gemm: c (+)= a b, gemm_nt: c (+)= a b^T, gemm_tn: c (+)= a^T b. A gradient that is accumulated adds to what is there.
template <class D, class T = float>
concept Device = std::copyable<D> && requires(const D& device, Matrix<const T> in, Matrix<T> out, std::span<const std::int32_t> classes,
                                              const T* row, T* sums, bool accumulate) {
  gemm(device, in, in, out, accumulate);
  gemm_nt(device, in, in, out, accumulate);
  gemm_tn(device, in, in, out, accumulate);
  add_row(device, row, out);               // to every row of out
  sum_rows(device, in, sums, accumulate);  // sums (+)= the sum of the rows
  relu(device, in, out);
  relu_backward(device, in, in, out);  // output of the forward pass, its gradient -> gradient of the input
  hyperbolic_tangent(device, in, out);
  hyperbolic_tangent_backward(device, in, in, out);
  add(device, in, in, out);
  copy(device, in, out);
  scale(device, T{}, out);  // out *= a number
  { sum_of_squares(device, in) } -> std::same_as<double>;
  { softmax_cross_entropy(device, in, classes, T{}, out) } -> std::same_as<LossSums>;  // an empty `out`: no gradient is wanted
  softmax_part(device, in, classes, Index{}, Index{}, out);  // the same of logits whose columns are divided, in two halves
  { softmax_cross_entropy_of_parts(device, in, classes, Index{}, in, T{}, out) } -> std::same_as<LossSums>;
  { squared_error(device, in, in, T{}, out) } -> std::same_as<LossSums>;
};

}  // namespace pdp
