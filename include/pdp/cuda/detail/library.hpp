#pragma once

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#if CUDART_VERSION < 12000
#error "pdp needs CUDA 12 or newer"
#endif
#else
#error "pdp on GPUs needs the CUDA toolkit, 12 or newer, and the CMake target pdp::cuda"
#include <see the error above>
#endif

#include <cstddef>
#include <new>

#include <pdp/core/error.hpp>

namespace pdp::cuda {

/// Throws DeviceError if the CUDA runtime reports an error, of this call or of earlier work on the device. `function`: name of the function
/// that returned `result`.
inline void check(const char* function, cudaError_t result) {
  if (result == cudaSuccess) [[likely]]
    return;
  static_cast<void>(cudaGetLastError());  // or the next check would report this error again
  throw DeviceError{text(function, " failed: ", cudaGetErrorString(result))};
}

/// Returns whether a stream or an event is complete. `result`: the result of cudaStreamQuery or cudaEventQuery. Throws as check() does.
inline bool is_reached(const char* function, cudaError_t result) {
  if (result != cudaErrorNotReady) {
    check(function, result);
    return true;
  }
  static_cast<void>(cudaGetLastError());  // or the next check would report this as an error
  return false;
}

/// Does the same as check() for an allocation of GPU memory; the message says how much memory is free.
inline void check_room(const char* function, cudaError_t result, int device, std::size_t bytes) {
  std::size_t free = 0, total = 0;
  if (result != cudaErrorMemoryAllocation || cudaMemGetInfo(&free, &total) != cudaSuccess) return check(function, result);
  static_cast<void>(cudaGetLastError());
  throw DeviceError{text("GPU ", device, " cannot allocate ", bytes, " bytes: ", free, " of ", total,
                         " bytes are free; use a smaller batch, or spread the model over more GPUs")};
}
/// Does the same for an allocation of pinned memory.
inline void check_host_room(const char* function, cudaError_t result, int device, std::size_t bytes) {
  if (result != cudaErrorMemoryAllocation) return check(function, result);
  static_cast<void>(cudaGetLastError());
  throw DeviceError{text("the host cannot pin ", bytes, " bytes for GPU ", device, "; run fewer programs on this host")};
}

/// Returns whether this process has begun to use a device; true if this cannot be found out. Making an unused device current would begin
/// its use, which takes some 500 MB of its memory. The driver's function is looked up at run time, so that a program starts without a
/// driver.
inline bool is_in_use(int device) noexcept {
  using GetState = int (*)(int device, unsigned* flags, int* active);
  static const GetState get_state = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    const cudaError_t asked = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t asked = cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &found, cudaEnableDefault, &result);
#endif
    if (asked != cudaSuccess) static_cast<void>(cudaGetLastError());
    return asked == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<GetState>(found) : nullptr;
  }();
  unsigned flags = 0;
  int active = 1;
  return get_state == nullptr || get_state(device, &flags, &active) != 0 || active != 0;
}

/// A guard that makes a device current for this thread's CUDA calls during its lifetime. The destructor makes the previous device current
/// again if this process uses that device.
class OnDevice {
 public:
  /// Throws DeviceError if the device cannot be used: another process may use it exclusively, or it may have too little free memory.
  explicit OnDevice(int device) { check(device, change_to(device)); }
  /// Does nothing if the device cannot be used.
  OnDevice(int device, std::nothrow_t) noexcept { static_cast<void>(change_to(device)); }
  OnDevice(OnDevice&&) = delete;
  ~OnDevice() {
    if (changed_ && is_in_use(before_)) cudaSetDevice(before_);
  }

 private:
  cudaError_t change_to(int device) noexcept {
    if (const cudaError_t result = cudaGetDevice(&before_); result != cudaSuccess || before_ == device) return result;
    const cudaError_t result = cudaSetDevice(device);
    changed_ = result == cudaSuccess;
    return result;
  }
  static void check(int device, cudaError_t result) {
    if (result == cudaSuccess) [[likely]]
      return;
    static_cast<void>(cudaGetLastError());
    throw DeviceError{text("GPU ", device, " cannot be used: ", cudaGetErrorString(result))};
  }

  int before_ = 0;
  bool changed_ = false;
};

/// Zeroes memory of the thread's current device. Returns when it is zero. Uses a stream of its own, so that it waits for nothing else.
inline void clear(void* memory, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaError_t begun = cudaMemsetAsync(memory, 0, bytes, stream), ended = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  check("cudaMemsetAsync", begun);
  check("cudaStreamSynchronize", ended);
}

}  // namespace pdp::cuda
