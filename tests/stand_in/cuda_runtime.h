// The part of CUDA C++ that pdp's kernels use, for the stand-in beside this file. A kernel is a function that is called once for each
// thread of a grid.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __shared__ static  // blocks run one after another
#define __launch_bounds__(threads)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x{in_x}, y{in_y}, z{in_z} {}
};

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace stand_in {

/// Calls body() once for every thread of a grid, with the four variables above set. The threads of a block take turns when they wait for
/// each other.
void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& body);
void wait_for_block();
/// Returns the value of the thread `from_lane` of the warp. All threads of the warp must make this call.
std::uint64_t exchange_in_warp(std::uint64_t value, unsigned from_lane);
unsigned lane();
/// Enqueues a grid on a stream.
void enqueue_grid(cudaStream_t stream, const dim3& grid, const dim3& block, std::function<void()> body);

}  // namespace stand_in

inline void __syncthreads() { stand_in::wait_for_block(); }
inline void __threadfence() {}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  if constexpr (sizeof(T) == sizeof(std::uint64_t))
    return std::bit_cast<T>(stand_in::exchange_in_warp(std::bit_cast<std::uint64_t>(value), static_cast<unsigned>(lane)));
  else
    return std::bit_cast<T>(
        static_cast<std::uint32_t>(stand_in::exchange_in_warp(std::bit_cast<std::uint32_t>(value), static_cast<unsigned>(lane))));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int apart) {
  return __shfl_sync(mask, value, static_cast<int>(stand_in::lane()) ^ apart);
}

inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

template <class... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Parameters... arguments) {
  stand_in::enqueue_grid(config->stream, config->gridDim, config->blockDim, [=] { kernel(arguments...); });
  return cudaSuccess;
}
