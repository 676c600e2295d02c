#pragma once

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include <pdp/comm/nccl/library.hpp>
#include <pdp/comm/transport.hpp>

namespace pdp::comm::nccl {

/// A communicator of NCCL: pdp's own, or one that a host program lends. What is lent is used and neither aborted nor destroyed.
class Handle {
 public:
  Handle(ncclComm_t comm, bool own) : comm_{comm}, own_{own} {}
  Handle(Handle&& other) noexcept : comm_{std::exchange(other.comm_, nullptr)}, own_{other.own_}, aborting_{std::move(other.aborting_)} {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    close();
    join();
  }

  /// Null once it was aborted.
  [[nodiscard]] ncclComm_t get() const { return comm_; }

  /// ncclInProgress while NCCL works on the last call in a thread of its own; else what became of it, or an error of what is in flight.
  [[nodiscard]] ncclResult_t state() const {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &found);
    return asked == ncclSuccess ? found : asked;
  }

  /// Begins to end what is in flight on the device, without the other ranks. NCCL says so to the device at once, and then waits for what it
  /// frees: for calls of other communicators that are still to be aborted, and for graphs whose owner is to hear of the failure first. So
  /// it does that in a thread of its own.
  void abort() noexcept {
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    if (comm == nullptr || !own_) return;
    int device = 0;
    const bool has_device = cudaGetDevice(&device) == cudaSuccess;
    try {
      aborting_ = std::thread{[=] {
        if (has_device) static_cast<void>(cudaSetDevice(device));  // NCCL goes back to it
        ncclCommAbort(comm);
      }};
    } catch (const std::system_error&) {  // there are no more threads
      ncclCommAbort(comm);
    }
  }
  /// Until NCCL has freed what was aborted, which it does when no graph holds calls of it.
  void join() noexcept {
    if (aborting_.joinable()) aborting_.join();
  }

  /// Gives it back, once what it has sent is on its way, or after some time.
  void close() noexcept {
    if (comm_ == nullptr || !own_) return;
    ncclResult_t result = ncclCommFinalize(comm_);
    for (const TimePoint until = Clock::now() + patience; result == ncclInProgress && Clock::now() < until; result = state())
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    if (result != ncclSuccess) return abort();
    ncclCommDestroy(std::exchange(comm_, nullptr));
  }

 private:
  static constexpr std::chrono::seconds patience{5};

  ncclComm_t comm_;
  bool own_;
  std::thread aborting_;
};

}  // namespace pdp::comm::nccl
