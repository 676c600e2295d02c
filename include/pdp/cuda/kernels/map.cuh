#pragma once

#include <pdp/cuda/kernels/elementwise.cuh>
#include <pdp/cuda/map.hpp>

namespace pdp::cuda {

namespace kernel {

template <class Function, class T>
struct MapForward {
  Function function;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const { y[i] = static_cast<T>(function(as_float(x[i]))); }
};
template <class Function, class T>
struct MapBackward {
  Function function;
  const T *x, *y, *gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const float value = as_float(y[i]);
    float derivative;
    if constexpr (requires { function.derivative(value); })
      derivative = function.derivative(value);
    else
      derivative = function.derivative(as_float(x[i]), value);
    gradient_x[i] = static_cast<T>(as_float(gradient_y[i]) * derivative);
  }
};

}  // namespace kernel

template <class Function, Computed T>
void Map<Function, T>::forward(const Device& device, const Function& function, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::MapForward<Function, Stored<T>>{function, stored(x.data), stored(y.data)});
}
template <class Function, Computed T>
void Map<Function, T>::backward(const Device& device, const Function& function, Matrix<const T> x, Matrix<const T> y,
                                Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(
      device, stored(y).size(),
      kernel::MapBackward<Function, Stored<T>>{function, stored(x.data), stored(y.data), stored(gradient_y.data), stored(gradient_x.data)});
}

}  // namespace pdp::cuda
