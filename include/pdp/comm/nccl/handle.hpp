#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include <pdp/comm/nccl/library.hpp>
#include <pdp/comm/transport.hpp>

namespace pdp::comm::nccl {

/// A communicator of NCCL: pdp's own, or one that a host program lends. What is lent is used and neither aborted nor destroyed.
///
/// NCCL frees a communicator when those of the host's other ranks are freed, too, which have connections with it, and when no graph holds
/// calls of it. So it does that in a thread of its own, which is left alone where it takes too long: the other rank may hang, or have more
/// to do.
class Handle {
 public:
  Handle(ncclComm_t comm, bool own) : comm_{comm}, own_{own} {}
  Handle(Handle&& other) noexcept
      : comm_{std::exchange(other.comm_, nullptr)},
        own_{other.own_},
        ending_{std::move(other.ending_)},
        end_{std::move(other.end_)},
        patience_{other.patience_} {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    close(patience_);
    static_cast<void>(join());
  }

  /// Null once it was aborted.
  [[nodiscard]] ncclComm_t get() const { return comm_; }

  /// ncclInProgress while NCCL works on the last call in a thread of its own; else what became of it, or an error of what is in flight.
  [[nodiscard]] ncclResult_t state() const {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &found);
    return asked == ncclSuccess ? found : asked;
  }

  /// Begins to end what is in flight on the device, without the other ranks: NCCL says so to the device at once.
  void abort() noexcept { end(ncclCommAbort); }
  /// Begins to give it back, once what it has sent has gone, or after some time. `patience`: for that, and for all of it.
  void close(Duration patience) noexcept {
    if (comm_ == nullptr || !own_) return;
    const TimePoint until = Clock::now() + patience;
    ncclResult_t result = ncclCommFinalize(comm_);
    for (; result == ncclInProgress && Clock::now() < until; result = state()) std::this_thread::sleep_for(std::chrono::microseconds{50});
    if (result != ncclSuccess) return abort();
    end(ncclCommDestroy);
    patience_ = std::max<Duration>(until - Clock::now(), Duration{});
  }
  /// Waits until NCCL has freed what was aborted or closed. False where that takes too long: then NCCL may still be at work for it.
  [[nodiscard]] bool join() noexcept {
    if (!ending_.joinable()) return true;
    const bool ended = end_.wait_for(patience_) == std::future_status::ready;
    ended ? ending_.join() : ending_.detach();
    return ended;
  }

 private:
  void end(ncclResult_t (*by)(ncclComm_t)) noexcept {
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    if (comm == nullptr || !own_) return;
    int device = 0;
    const bool has_device = ncclCommCuDevice(comm, &device) == ncclSuccess || cudaGetDevice(&device) == cudaSuccess;
    try {
      std::packaged_task<void()> task{[=] {
        if (has_device) static_cast<void>(cudaSetDevice(device));  // NCCL goes back to it
        by(comm);
      }};
      end_ = task.get_future();
      ending_ = std::thread{std::move(task)};
    } catch (const std::system_error&) {  // there are no more threads
      by(comm);
    }
  }

  ncclComm_t comm_;
  bool own_;
  std::thread ending_;
  std::future<void> end_;
  Duration patience_ = std::chrono::seconds{5};  // for the thread
};

}  // namespace pdp::comm::nccl
