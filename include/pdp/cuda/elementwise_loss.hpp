#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cuda/handle.hpp>
#include <pdp/cuda/operations.hpp>

namespace pdp::cuda {

/// The kernel of a function for loss::Elementwise. nvcc compiles it. Those of pdp's own functions come with the CMake target pdp::cuda. For
/// another function, whose members must be constexpr, a .cu file of the program includes pdp/cuda/kernels/elementwise_loss.cuh and
/// instantiates `template struct pdp::cuda::ElementwiseLoss<Function, float>;`, or the same with BFloat16 or Float16. Without that, the
/// program does not link.
template <class Function, Computed T>
struct ElementwiseLoss {
  static void compute(const Device& device, const Function& function, Matrix<const T> output, Matrix<const Accumulated<T>> target,
                      const double* scale, Matrix<T> gradient, LossSums* sums, bool ignores_nan);
};

/// The same operation as that of pdp/cpu/elementwise_loss.hpp.
template <class Function, Computed T>
void elementwise_loss(const Device& device, const Function& function, Matrix<const T> output, Matrix<const Accumulated<T>> target,
                      const double* scale, Matrix<T> gradient, LossSums* sums, bool ignores_nan = false) {
  ElementwiseLoss<Function, T>::compute(device, function, output, target, scale, gradient, sums, ignores_nan);
}

}  // namespace pdp::cuda
