#pragma once

/// Definitions for pdp/cpu/softmax.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <concepts>

#include <pdp/core/matrix.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/softmax.hpp>
#include <pdp/cpu/source/exponentials.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Returns the sum of the products of two rows. Adds in double.
template <class V, class T>
[[gnu::always_inline]] inline double sum_of_products(const T* a, const T* b, Index count) {
  double total = 0;
  alignas(V) T lanes[V::count];
  Index i = 0;
  for (; i + V::count <= count; i += V::count) {
    (V::load(a + i) * V::load(b + i)).store(lanes);
    total += sum(lanes, V::count);
  }
  for (; i < count; ++i) total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return total;
}

}  // namespace detail

template <std::floating_point T>
void softmax(const Cpu& cpu, Matrix<const T> x, Matrix<T> y) {
  if (x.cols == 0) return;
  in_parts(cpu, x.rows, least_costly_part / x.cols + 1, [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<T, S>;
      const Index width = x.cols;
      for (Index row = begin; row < end; ++row) {
        T* const to = y.row(row);
        detail::exponentials<V>(x.row(row), detail::largest<V>(x.row(row), width), width, to);
        const T scale = static_cast<T>(1 / detail::sum(to, width));
        detail::transform<V>(to, width, to, [scale](const auto& value) { return value * scale; });
      }
    });
  });
}

// y_i depends on x_j by y_i (delta_ij - y_j). So the gradient of x is y times the gradient of y less its mean, weighted by y.
template <std::floating_point T>
void softmax_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  if (y.cols == 0) return;
  in_parts(cpu, y.rows, least_costly_part / y.cols + 1, [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      using V = Lanes<T, S>;
      const Index width = y.cols;
      for (Index row = begin; row < end; ++row) {
        const T *const out = y.row(row), *const gradient = gradient_y.row(row);
        T* const to = gradient_x.row(row);
        const T mean = static_cast<T>(detail::sum_of_products<V>(out, gradient, width));
        Index i = 0;
        for (; i + V::count <= width; i += V::count) (V::load(out + i) * (V::load(gradient + i) - mean)).store(to + i);
        for (; i < width; ++i) to[i] = out[i] * (gradient[i] - mean);
      }
    });
  });
}

}  // namespace pdp::cpu
