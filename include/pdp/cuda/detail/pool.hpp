#pragma once

#include <cstddef>
#include <cstdint>

#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// A pool of a device's memory. It keeps at most 64 MiB more than is in use. A model allocates its memory once; the memory of a destroyed
/// model becomes free for others, such as NCCL. All GPUs of the process that can reach the device may access the pool, since NCCL's ranks
/// write to each other's memory if they are threads.
class Pool {
 public:
  explicit Pool(int device) : device_{device} {
    const OnDevice on{device};
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    check("cudaMemPoolCreate", cudaMemPoolCreate(&pool_, &properties));
    try {
      keep();
      open_to_peers();
    } catch (...) {
      cudaMemPoolDestroy(pool_);
      throw;
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    const OnDevice on{device_, std::nothrow};
    cudaMemPoolDestroy(pool_);
  }

  /// allocate() and give_back() take effect in the order of the stream.
  [[nodiscard]] cudaError_t allocate(void** memory, std::size_t bytes, cudaStream_t stream) {
    const cudaError_t result = cudaMallocFromPoolAsync(memory, bytes, pool_, stream);
    if (result != cudaSuccess) return result;
    in_use_ += bytes;
    keep();
    return result;
  }
  void give_back(void* memory, std::size_t bytes, cudaStream_t stream) noexcept {
    cudaFreeAsync(memory, stream);
    in_use_ -= bytes;
    keep();
  }

 private:
  /// Sets how many bytes the pool keeps. The rest goes back to the driver at the next synchronisation.
  void keep() noexcept {
    std::uint64_t most = in_use_ + (std::uint64_t{64} << 20);
    cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &most);
  }
  void open_to_peers() {
    int devices = 0;
    check("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    for (int other = 0; other < devices; ++other) {
      int can = 0;
      if (other != device_) check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, other, device_));
      if (can == 0) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = other;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check("cudaMemPoolSetAccess", cudaMemPoolSetAccess(pool_, &access, 1));
    }
  }

  int device_;
  std::uint64_t in_use_ = 0;  // bytes
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace pdp::cuda
