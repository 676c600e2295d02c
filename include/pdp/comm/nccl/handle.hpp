#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/nccl/library.hpp>

namespace pdp::comm::nccl {

/// A communicator of NCCL: pdp's own, or one that a host program lends. What is lent is used and neither aborted nor destroyed.
///
/// NCCL frees a communicator when those of the host's other ranks are freed, too, which have connections with it, and when no graph holds
/// calls of it. So it does that in a thread of its own, which is left alone where it takes too long: the other rank may hang, or have more
/// to do.
class Handle {
 public:
  /// `device`: its own.
  Handle(ncclComm_t comm, int device, bool own) : comm_{comm}, device_{device}, own_{own} {}
  Handle(Handle&& other) noexcept
      : comm_{std::exchange(other.comm_, nullptr)},
        device_{other.device_},
        own_{other.own_},
        ending_{std::move(other.ending_)},
        end_{std::move(other.end_)},
        patience_{other.patience_} {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    close(grace);
    static_cast<void>(join());
  }

  /// Null once it was aborted.
  [[nodiscard]] ncclComm_t get() const { return comm_; }

  /// ncclInProgress while NCCL works on the last call in a thread of its own; else what became of it, or an error of what is in flight.
  [[nodiscard]] ncclResult_t state() const { return state_of(comm_); }

  /// Begins to end what is in flight on the device, without the other ranks: NCCL says so to the device at once.
  void abort() noexcept {
    if (comm_ == nullptr) return;
    patience_ = grace;
    end([](ncclComm_t comm) { ncclCommAbort(comm); });
  }
  /// Begins to give it back, once what it has sent has gone, for which it has so long.
  void close(Duration patience) noexcept {
    if (comm_ == nullptr) return;  // aborted: join() waits no longer for it
    patience = std::min<Duration>(patience, std::chrono::hours{24 * 365});  // so that the clock takes it
    patience_ = patience + grace;
    end([until = Clock::now() + patience](ncclComm_t comm) {
      ncclResult_t result = ncclCommFinalize(comm);
      for (; result == ncclInProgress && Clock::now() < until; result = state_of(comm))
        std::this_thread::sleep_for(std::chrono::microseconds{50});
      result == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm);
    });
  }
  /// Waits until NCCL has freed what was aborted or closed. False where that takes too long: then NCCL may still be at work for it.
  [[nodiscard]] bool join() noexcept {
    if (!ending_.joinable()) return true;
    const TimePoint until = later(Clock::now(), patience_);
    bool ended = false;
    do ended = end_.wait_for(Clock::slice) == std::future_status::ready;
    while (!ended && Clock::now() < until);
    ended ? ending_.join() : ending_.detach();
    return ended;
  }

 private:
  static constexpr std::chrono::seconds grace{5};  // to free a communicator

  static ncclResult_t state_of(ncclComm_t comm) {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &found);
    return asked == ncclSuccess ? found : asked;
  }

  template <class F>
  void end(const F& by) noexcept {
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    if (!own_) return;
    try {
      std::packaged_task<void()> task{[by, comm, device = device_] {
        cudaSetDevice(device);  // NCCL goes back to it
        by(comm);
      }};
      end_ = task.get_future();
      ending_ = std::thread{std::move(task)};
    } catch (...) {  // there are no more threads
      by(comm);
    }
  }

  ncclComm_t comm_;
  int device_;
  bool own_;
  std::thread ending_;
  std::future<void> end_;
  Duration patience_ = grace;  // for the thread
};

}  // namespace pdp::comm::nccl
