#pragma once

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#if CUDART_VERSION < 12000
#error "pdp needs CUDA 12 or newer"
#endif
#else
#error "pdp on GPUs needs the CUDA toolkit, 12 or newer, and the CMake target pdp::cuda"
#endif

#include <cstddef>

#include <pdp/core/error.hpp>

namespace pdp::cuda {

/// Throws DeviceError where the CUDA runtime refuses, or something on the device has failed.
inline void check(const char* function, cudaError_t result) {
  if (result != cudaSuccess) [[unlikely]]
    throw DeviceError{text(function, " failed: ", cudaGetErrorString(result))};
}

/// Makes a device the one that this thread's calls of CUDA are for, for as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess || before_ == device) return;
    changed_ = cudaSetDevice(device) == cudaSuccess;
  }
  OnDevice(OnDevice&&) = delete;
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Zeros memory of the thread's current device when this returns: on a stream of its own, so that it waits for nothing else.
inline void clear(void* memory, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaError_t begun = cudaMemsetAsync(memory, 0, bytes, stream), ended = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  check("cudaMemsetAsync", begun);
  check("cudaStreamSynchronize", ended);
}

}  // namespace pdp::cuda
