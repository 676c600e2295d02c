#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <concepts>
#include <type_traits>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cuda/detail/state.hpp>

namespace pdp::cuda {

/// The number of threads of a block, for all kernels that do not say otherwise.
inline constexpr unsigned block_threads = 256;
inline constexpr unsigned warp_threads = 32;

/// Returns the number of blocks for `count` items, `of_each` a block: from 1 to `most`.
inline unsigned blocks_for(Index count, Index of_each, unsigned most) {
  return static_cast<unsigned>(std::clamp<Index>((count + of_each - 1) / of_each, 1, most));
}

/// The type that kernels use for an element type: __half for Float16. GPU compilers know neither the host's float16 nor classes that hold
/// it, so code that nvcc compiles must not call member functions of these classes.
template <class T>
using Stored =
    std::conditional_t<std::same_as<std::remove_const_t<T>, Float16>, std::conditional_t<std::is_const_v<T>, const __half, __half>, T>;
static_assert(sizeof(__half) == sizeof(Float16));
template <class T>
Stored<T>* stored(T* values) {
  return reinterpret_cast<Stored<T>*>(values);
}
template <class T>
Matrix<Stored<T>> stored(const Matrix<T>& values) {
  return {stored(values.data), values.rows, values.cols};
}

/// Returns the memory of a matrix. Not a lambda, which nvcc would also compile for GPUs, without Float16.
template <class T>
Bytes bytes_of(const Matrix<T>& matrix) {
  return {reinterpret_cast<const std::byte*>(matrix.data), static_cast<std::size_t>(stored(matrix).size()) * sizeof(T)};
}

/// Launches a kernel on a stream of GPU `index`.
template <class... Parameters, class... Arguments>
void launch_on(int index, cudaStream_t stream, void (*kernel)(Parameters...), unsigned blocks, dim3 threads,
               const Arguments&... arguments) {
  const OnDevice on{index};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{blocks};
  config.blockDim = threads;
  config.stream = stream;
  check("cudaLaunchKernelEx", cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

/// Launches a kernel on the device's stream.
template <class... Parameters, class... Arguments>
void launch(const Device& device, void (*kernel)(Parameters...), unsigned blocks, dim3 threads, const Arguments&... arguments) {
  launch_on(device.index(), device.state().stream(), kernel, blocks, threads, arguments...);
}

}  // namespace pdp::cuda
