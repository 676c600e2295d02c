#pragma once

#include <pdp/core/matrix.hpp>
#include <pdp/cuda/handle.hpp>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

/// The kernels of a function for nn::Elementwise. nvcc compiles them. Those of pdp's own functions come with the CMake target pdp::cuda.
/// For another function, whose members must be constexpr, a .cu file of the program includes pdp/cuda/kernels/map.cuh and instantiates
/// `template struct pdp::cuda::Map<Function, float>;`, or the same with BFloat16 or Float16. Without that, the program does not link.
template <class Function, Computed T>
struct Map {
  static void forward(const Device& device, const Function& function, Matrix<const T> x, Matrix<T> y);
  static void backward(const Device& device, const Function& function, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x);
};

/// The same operations as those of pdp/cpu/map.hpp.
template <class Function, Computed T>
void map(const Device& device, const Function& function, Matrix<const T> x, Matrix<T> y) {
  Map<Function, T>::forward(device, function, x, y);
}
template <class Function, Computed T>
void map_backward(const Device& device, const Function& function, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                  Matrix<T> gradient_x) {
  Map<Function, T>::backward(device, function, x, y, gradient_y, gradient_x);
}

}  // namespace pdp::cuda
