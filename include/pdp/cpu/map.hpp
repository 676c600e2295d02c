#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/simd/elementary.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Computes y = function(x), elementwise; see nn::Elementwise. y may be x.
template <class Function, class T>
void map(const Cpu& cpu, const Function& function, Matrix<const T> x, Matrix<T> y) {
  elementwise<T>(
      cpu, x.size(), [=, from = x.data, to = y.data]<class V>(Index i, auto io) { io.store(function(io.load(from + i)), to + i); },
      least_costly_part);
}

/// Computes the gradient of the function's input from the input, the output and the gradient of the output. Reads the input only if
/// function.derivative() takes it.
template <class Function, class T>
void map_backward(const Cpu& cpu, const Function& function, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                  Matrix<T> gradient_x) {
  elementwise<T>(
      cpu, y.size(),
      [=, in = x.data, out = y.data, from = gradient_y.data, to = gradient_x.data]<class V>(Index i, auto io) {
        const V value = io.load(out + i), gradient = io.load(from + i);
        if constexpr (requires { function.derivative(value); })
          io.store(gradient * function.derivative(value), to + i);
        else
          io.store(gradient * function.derivative(io.load(in + i), value), to + i);
      },
      least_costly_part);
}

}  // namespace pdp::cpu
