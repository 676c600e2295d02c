#pragma once

/// Definitions for pdp/cpu/activation.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/matrix.hpp>
#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/simd/elementary.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class T>
void relu(const Cpu& cpu, Matrix<const T> x, Matrix<T> y) {
  elementwise<T>(cpu, x.size(), [=]<class V>(Index i, auto io) {
    const V a = io.load(x.data + i);
    io.store(where_greater(V{}, a, V{}, a), y.data + i);  // NaN stays NaN
  });
}

template <class T>
void relu_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  elementwise<T>(cpu, y.size(), [=]<class V>(Index i, auto io) {
    io.store(where_greater(io.load(y.data + i), V{}, io.load(gradient_y.data + i), V{}), gradient_x.data + i);
  });
}

template <class T>
void hyperbolic_tangent(const Cpu& cpu, Matrix<const T> x, Matrix<T> y) {
  elementwise<T>(
      cpu, x.size(), [=]<class V>(Index i, auto io) { io.store(tanh(io.load(x.data + i)), y.data + i); }, least_costly_part);
}

template <class T>
void hyperbolic_tangent_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  elementwise<T>(cpu, y.size(), [=]<class V>(Index i, auto io) {
    const V out = io.load(y.data + i);
    io.store(io.load(gradient_y.data + i) * (1 - out * out), gradient_x.data + i);
  });
}

}  // namespace pdp::cpu
