#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include <pdp/comm/clock.hpp>

namespace pdp::comm::shm {

/// Where a rank sleeps until another one, of any process, has something for it. It costs those who do not sleep a look at a line that
/// nobody writes. The protocol is Dekker's: the sleeper says that it sleeps and then looks once more; the other one publishes what it has
/// and then looks whether somebody sleeps. Both in sequentially consistent order, or each could miss the other.
class Parking {
 public:
  /// How it sleeps: in the kernel, on this word; or in a poll, where it waits for other things as well, among them its pipe (see Bell).
  enum State : std::uint32_t { awake, on_word, on_pipe };

  /// How it slept until now. To be called after what the sleeper waits for has been stored in sequentially consistent order.
  State rouse() {
    if (state_.load(std::memory_order_seq_cst) == awake) return awake;
    return static_cast<State>(state_.exchange(awake, std::memory_order_seq_cst));
  }
  void wake() { syscall(SYS_futex, address(), FUTEX_WAKE, 1, nullptr, nullptr, 0); }

  /// Sleeps until it is woken or the given time, unless `ready()` after all; now and then for no reason.
  template <class Ready>
  void sleep(TimePoint until, const Ready& ready) {
    lie_down(on_word);
    if (!ready()) {
      const timespec timeout = time_left(until);
      syscall(SYS_futex, address(), FUTEX_WAIT, on_word, &timeout, nullptr, 0);
    }
    get_up();
  }
  /// The two ends of a sleep elsewhere. After the first, there must be another look.
  void lie_down(State how) { state_.store(how, std::memory_order_seq_cst); }
  void get_up() { state_.store(awake, std::memory_order_relaxed); }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&state_); }

  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace pdp::comm::shm
