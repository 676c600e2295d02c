#pragma once

/// Exponentials of rows, for the definitions of pdp/cpu/loss.hpp and pdp/cpu/softmax.hpp.

#include <algorithm>
#include <array>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/simd/elementary.hpp>

namespace pdp::cpu::detail {

// Functions marked always_inline are inlined into the calling loops, and so compiled for the registers of these loops. Otherwise clang
// would compile some of the functions for the registers that its flags allow.

/// Returns the largest number of a row.
template <class V, class T>
[[gnu::always_inline]] inline T largest(const T* x, Index count) {
  T best = x[0];
  Index i = 0;
  if (count >= V::count) {
    V most = V::load(x);
    for (i = V::count; i + V::count <= count; i += V::count) most = where_greater(V::load(x + i), most, V::load(x + i), most);
    best = most.largest();
  }
  for (; i < count; ++i) best = is_greater(x[i], best) ? x[i] : best;
  return best;
}
/// Returns the sum, in double. The term of the row's largest logit is 1. In float, small terms of other logits would be lost next to it,
/// and so would the small loss of a row that is nearly right.
template <class T>
double sum(const T* x, Index count) {
  std::array<double, 4> sums{};  // four sums, as a compiler must not reorder the terms of a single one
  Index i = 0;
  for (; i + 4 <= count; i += 4)
    for (Index lane = 0; lane < 4; ++lane) sums[as_size(lane)] += as_double(x[i + lane]);
  for (; i < count; ++i) sums[0] += as_double(x[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
/// Computes to = function(x), elementwise. Calls the function with registers and with single numbers. `to` may be x.
template <class V, class T, class F>
[[gnu::always_inline]] inline void transform(const T* x, Index count, T* to, F function) {
  Index i = 0;
  for (; i + V::count <= count; i += V::count) function(V::load(x + i)).store(to + i);
  for (; i < count; ++i) to[i] = function(x[i]);
}
/// Computes to = exp(x - less). `to` may be x.
template <class V, class T>
[[gnu::always_inline]] inline void exponentials(const T* x, T less, Index count, T* to) {
  Index i = 0;
  for (; i + V::count <= count; i += V::count) exp(V::load(x + i) - less).store(to + i);
  if (i < count) exp(V::load(x + i, count - i) - less).store(to + i, count - i);
}
/// Returns the sum of exp(x - less).
template <class V, class T>
[[gnu::always_inline]] inline double sum_of_exponentials(const T* x, T less, Index count) {
  double total = 0;
  alignas(V) T lanes[V::count];
  for (Index i = 0; i < count; i += V::count) {
    const Index some = std::min<Index>(V::count, count - i);
    exponentials<V>(x + i, less, some, lanes);
    total += sum(lanes, some);
  }
  return total;
}

}  // namespace pdp::cpu::detail
