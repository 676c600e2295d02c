#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// Returns "13.0" for 13000.
inline std::string version_text(int number) { return text(number / 1000, '.', number % 1000 / 10); }

/// Returns the number of GPUs that this process may use. Throws ConfigError, which says what is missing, if there is none. `begin` starts
/// the message, as in "rank 1 cannot use NCCL"; `otherwise` says what can be done without a GPU.
inline int count_devices(std::string_view begin, std::string_view otherwise) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (result == cudaErrorInsufficientDriver) {
    int driver = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    const std::string needs = version_text(CUDART_VERSION);
    if (driver == 0)
      throw ConfigError{text(begin, ": there is no NVIDIA driver on this machine, so no GPU can be used; install one for CUDA ", needs,
                             ", or ", otherwise)};
    throw ConfigError{text(begin, ": the NVIDIA driver of this machine is for CUDA ", version_text(driver),
                           ", but this program was built with CUDA ", needs, "; install a newer driver, or build with an older toolkit")};
  }
  if (result != cudaSuccess && result != cudaErrorNoDevice)
    throw ConfigError{text(begin, ": cudaGetDeviceCount failed: ", cudaGetErrorString(result))};
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  throw ConfigError{text(begin, ": there is no GPU that this process may use",
                         visible != nullptr ? text(" (CUDA_VISIBLE_DEVICES is '", visible, "')") : std::string{}, "; ", otherwise)};
}

}  // namespace pdp::cuda
