#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/nccl/library.hpp>

namespace pdp::comm::nccl {

/// An NCCL communicator, which belongs to pdp or to the program. One that belongs to the program is neither aborted nor destroyed.
///
/// NCCL frees a communicator only when the connected ranks of the host free theirs, too, and when no graph holds calls of it. So a separate
/// thread frees it. If that takes too long, the thread is detached: another rank may hang, or have more work to do.
class Handle {
 public:
  /// `device`: of the communicator. `own`: the communicator belongs to pdp.
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

  /// Returns null after abort() or close().
  [[nodiscard]] ncclComm_t get() const { return comm_; }

  /// Returns ncclInProgress while NCCL works on the last call in a thread of its own. Otherwise returns that call's result, or an error of
  /// the calls in flight.
  [[nodiscard]] ncclResult_t state() const { return state_of(comm_); }

  /// Begins to abort the calls in flight, without the other ranks. NCCL signals the device at once.
  void abort() noexcept {
    if (comm_ == nullptr) return;
    patience_ = grace;
    end([](ncclComm_t comm) { ncclCommAbort(comm); });
  }
  /// Begins to free the communicator after its calls in flight. If these take longer than `patience`, aborts them.
  void close(Duration patience) noexcept {
    if (comm_ == nullptr) return;                                           // already aborted: join() keeps its shorter limit
    patience = std::min<Duration>(patience, std::chrono::hours{24 * 365});  // within the range of the clock
    patience_ = patience + grace;
    end([until = Clock::now() + patience](ncclComm_t comm) {
      ncclResult_t result = ncclCommFinalize(comm);
      for (; result == ncclInProgress && Clock::now() < until; result = state_of(comm))
        std::this_thread::sleep_for(std::chrono::microseconds{50});
      result == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm);
    });
  }
  /// Waits until NCCL has freed the aborted or closed communicator. Returns false if that takes too long; NCCL may still use it then.
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
  static constexpr std::chrono::seconds grace{5};  // time for NCCL to free a communicator

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
        cudaSetDevice(device);  // NCCL restores this device afterwards
        by(comm);
      }};
      end_ = task.get_future();
      ending_ = std::thread{std::move(task)};
    } catch (...) {  // no thread could be started
      by(comm);
    }
  }

  ncclComm_t comm_;
  int device_;
  bool own_;
  std::thread ending_;
  std::future<void> end_;
  Duration patience_ = grace;  // how long join() waits for the thread
};

}  // namespace pdp::comm::nccl
