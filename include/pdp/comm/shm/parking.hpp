#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include <pdp/comm/waiting.hpp>

namespace pdp::comm::shm {

/// Where a rank sleeps until another one, of any process, has something for it. It costs those who do not sleep a look at a line that
/// nobody writes. The protocol is Dekker's: the sleeper says that it sleeps and then looks once more; the other one publishes what it has
/// and then looks whether somebody sleeps. Both in sequentially consistent order, or each could miss the other.
class Parking {
 public:
  /// To be called after what the sleeper waits for has been stored in sequentially consistent order.
  void wake() {
    if (parked_.load(std::memory_order_seq_cst) == 0) return;
    if (parked_.exchange(0, std::memory_order_seq_cst) != 0) syscall(SYS_futex, address(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps until it is woken or the given time, unless `ready()` after all; now and then for no reason.
  template <class Ready>
  void sleep(TimePoint until, const Ready& ready) {
    parked_.store(1, std::memory_order_seq_cst);
    if (!ready()) {
      const timespec timeout = time_left(until);
      syscall(SYS_futex, address(), FUTEX_WAIT, 1, &timeout, nullptr, 0);
    }
    parked_.store(0, std::memory_order_relaxed);
  }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&parked_); }

  std::atomic<std::uint32_t> parked_{0};
};

}  // namespace pdp::comm::shm
