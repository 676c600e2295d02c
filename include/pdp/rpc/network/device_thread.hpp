#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <pdp/comm/os/blocked_signals.hpp>

namespace pdp::rpc {

/// A thread of the host that computes in place of a device. It runs one function at a time, while the caller waits.
class DeviceThread {
 public:
  DeviceThread() {
    const comm::BlockedSignals blocked;
    thread_ = std::thread{[this] { serve(); }};
  }
  DeviceThread(DeviceThread&&) = delete;
  ~DeviceThread() {
    {
      const std::lock_guard lock{mutex_};
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Runs the function on the thread and waits for its end. Throws what the function throws.
  void run(const std::function<void()>& function) {
    std::unique_lock lock{mutex_};
    function_ = &function;
    changed_.notify_all();
    changed_.wait(lock, [this] { return function_ == nullptr; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void serve() {
    std::unique_lock lock{mutex_};
    while (true) {
      changed_.wait(lock, [this] { return ends_ || function_ != nullptr; });
      if (function_ == nullptr) return;
      try {
        (*function_)();
      } catch (...) {
        error_ = std::current_exception();
      }
      function_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* function_ = nullptr;  // to run; null when it has ended
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace pdp::rpc
