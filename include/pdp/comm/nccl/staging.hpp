#pragma once

#include <cstddef>

#include <pdp/comm/nccl/library.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::nccl {

/// Scratch memory of a device and pinned host memory, in which ranks exchange records. It is allocated once for a world: freeing device
/// memory waits for all work of the device, and that work may wait for other ranks.
class Staging {
 public:
  static constexpr std::size_t record = 64;  // bytes of one rank's record

  Staging(int device, int ranks) {
    const OnDevice on{device};
    const std::size_t records = record * as_size(ranks);
    void *on_device = nullptr, *on_host = nullptr;
    cuda::check_room("cudaMalloc", cudaMalloc(&on_device, records + record), device, records + record);
    device_ = static_cast<std::byte*>(on_device);
    barrier_ = device_ + records;
    if (const cudaError_t result = cudaMallocHost(&on_host, records); result != cudaSuccess) {
      cudaFree(device_);
      cuda::check_host_room("cudaMallocHost", result, device, records);
    }
    host_ = static_cast<std::byte*>(on_host);
  }
  Staging(Staging&&) = delete;
  ~Staging() {
    if (device_ != nullptr) cudaFree(device_);
    if (host_ != nullptr) cudaFreeHost(host_);
  }

  /// Gives up the memory: the destructor does not free it.
  void leave() noexcept { device_ = host_ = nullptr; }

  [[nodiscard]] std::byte* device() const { return device_; }
  [[nodiscard]] std::byte* host() const { return host_; }
  /// Returns a byte of device memory for barriers. Its value is not used.
  [[nodiscard]] std::byte* barrier() const { return barrier_; }

 private:
  std::byte* device_ = nullptr;
  std::byte* barrier_ = nullptr;
  std::byte* host_ = nullptr;
};

}  // namespace pdp::comm::nccl
