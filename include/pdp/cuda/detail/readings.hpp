#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <pdp/cuda/detail/library.hpp>
#include <pdp/cuda/memory.hpp>

namespace pdp::cuda {

/// Pinned memory to which a device copies a small value, and an event that is recorded after the copy.
struct Reading {
  void* memory = nullptr;
  cudaEvent_t end = nullptr;
};

/// The Readings of a device, which are reused. Two exist from the start, since making one may wait for all work of the device.
class Readings {
 public:
  explicit Readings(int device) : device_{device} {
    const OnDevice on{device};
    try {
      make();
      make();
    } catch (...) {
      release_all();
      throw;
    }
  }
  Readings(const Readings&) = delete;
  Readings& operator=(const Readings&) = delete;
  ~Readings() {
    const OnDevice on{device_, std::nothrow};
    release_all();
  }

  /// Starts a copy of a value to a free Reading, in the order of the stream. Returns the Reading.
  [[nodiscard]] Reading& start(const void* value, std::size_t bytes, cudaStream_t stream) {
    Reading& reading = free_.empty() ? make() : *free_.back();
    check("cudaMemcpyAsync", cudaMemcpyAsync(reading.memory, value, bytes, cudaMemcpyDeviceToHost, stream));
    check("cudaEventRecord", cudaEventRecord(reading.end, stream));
    free_.pop_back();
    return reading;
  }
  /// Makes a Reading free again. If its copy is still in flight, the next copy to it follows in the order of the stream.
  void take_back(Reading& reading) noexcept { free_.push_back(&reading); }

 private:
  Reading& make() {
    free_.reserve(all_.size() + 1);  // so that take_back() never allocates
    Reading& reading = all_.emplace_back();
    check_host_room("cudaMallocHost", cudaMallocHost(&reading.memory, ReadBytes::most), device_, ReadBytes::most);
    check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&reading.end, cudaEventDisableTiming));
    free_.push_back(&reading);
    return reading;
  }
  void release_all() noexcept {
    for (const Reading& each : all_) {
      if (each.end != nullptr) {
        cudaEventSynchronize(each.end);
        cudaEventDestroy(each.end);
      }
      if (each.memory != nullptr) cudaFreeHost(each.memory);
    }
  }

  int device_;
  std::deque<Reading> all_;  // a deque, as Readings must not move
  std::vector<Reading*> free_;
};

}  // namespace pdp::cuda
