#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include <pdp/core/shape.hpp>
#include <pdp/cuda/state.hpp>

namespace pdp::cuda {

/// Threads of a block, for all kernels that do not say otherwise.
inline constexpr unsigned block_threads = 256;
inline constexpr unsigned warp_threads = 32;

/// How many blocks there are for so many things, of which each block takes some.
inline unsigned blocks_for(Index count, Index of_each, unsigned most) {
  return static_cast<unsigned>(std::clamp<Index>((count + of_each - 1) / of_each, 1, most));
}

/// Gives a kernel to the device's stream.
template <class... Parameters, class... Arguments>
void launch(const Device& device, void (*kernel)(Parameters...), unsigned blocks, dim3 threads, const Arguments&... arguments) {
  const OnDevice on{device.index()};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{blocks};
  config.blockDim = threads;
  config.stream = device.state().stream();
  check("cudaLaunchKernelEx", cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

}  // namespace pdp::cuda
