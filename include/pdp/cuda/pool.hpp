#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <pdp/cuda/library.hpp>

namespace pdp::cuda {

/// A pool of a device's memory, which keeps what comes back for what is asked for next. All GPUs of the process that can reach the device
/// may touch it: NCCL has ranks that are threads write to each other's memory.
class Pool {
 public:
  explicit Pool(int device) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    check("cudaMemPoolCreate", cudaMemPoolCreate(&pool_, &properties));
    try {
      std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
      check("cudaMemPoolSetAttribute", cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
      open_to_peers(device);
    } catch (...) {
      cudaMemPoolDestroy(pool_);
      throw;
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { cudaMemPoolDestroy(pool_); }

  [[nodiscard]] cudaError_t allocate(void** memory, std::size_t bytes, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(memory, bytes, pool_, stream);
  }

 private:
  void open_to_peers(int device) {
    int devices = 0;
    check("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    for (int other = 0; other < devices; ++other) {
      int can = 0;
      if (other != device) check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, other, device));
      if (can == 0) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = other;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check("cudaMemPoolSetAccess", cudaMemPoolSetAccess(pool_, &access, 1));
    }
  }

  cudaMemPool_t pool_ = nullptr;
};

}  // namespace pdp::cuda
