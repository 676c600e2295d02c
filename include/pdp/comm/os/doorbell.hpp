#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include <pdp/comm/clock.hpp>

namespace pdp::comm {

/// A wake-up signal: a rank sleeps on it until another rank has something for it. A waiter first spins, which suits ranks on cores of their
/// own. Then it yields, which suits more ranks than cores, and then it sleeps in the kernel. It sleeps on a futex since std::atomic::wait
/// has no timeout.
class Doorbell {
 public:
  /// Returns the number of rings so far. Read it before looking for work, and pass it to wait().
  [[nodiscard]] std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }

  void ring() {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  }

  /// Returns when the bell has been rung since `seen`, or at `until`. May return early without a ring, after one Clock::slice at the
  /// latest.
  void wait(std::uint32_t seen, TimePoint until) {
    for (int spin = 0; spin < spins; ++spin)
      if (rings() != seen) return;
    for (int yield = 0; yield < yields; ++yield) {
      if (rings() != seen) return;
      sched_yield();
    }
    const timespec timeout = time_left(until);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (rings_.load(std::memory_order_seq_cst) == seen) syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static constexpr int spins = 200;
  static constexpr int yields = 20;
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&rings_); }

  alignas(64) std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace pdp::comm
