#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include <pdp/comm/clock.hpp>

namespace pdp::comm::shm {

/// A word on which a rank sleeps until a rank of any process wakes it. While it is awake, other ranks only read a cache line that is not
/// written. The protocol is Dekker's: the sleeper announces its sleep, then checks once more; the other rank publishes its data, then
/// checks for a sleeper. Both use sequentially consistent order, or each could miss the other.
class Parking {
 public:
  /// How the rank sleeps: in the kernel, on this word; or in a poll on its pipe and other descriptors (see Bell).
  enum State : std::uint32_t { awake, on_word, on_pipe };

  /// Marks the rank awake and returns how it slept. Call this after a sequentially consistent store of the value that it waits for.
  State rouse() {
    if (state_.load(std::memory_order_seq_cst) == awake) return awake;
    return static_cast<State>(state_.exchange(awake, std::memory_order_seq_cst));
  }
  void wake() { syscall(SYS_futex, address(), FUTEX_WAKE, 1, nullptr, nullptr, 0); }

  /// Sleeps until the rank is woken or until the given time, unless ready() is true. May wake up early.
  template <class Ready>
  void sleep(TimePoint until, const Ready& ready) {
    lie_down(on_word);
    if (!ready()) {
      const timespec timeout = time_left(until);
      syscall(SYS_futex, address(), FUTEX_WAIT, on_word, &timeout, nullptr, 0);
    }
    get_up();
  }
  /// Begin and end a sleep elsewhere. After lie_down(), check once more before sleeping.
  void lie_down(State how) { state_.store(how, std::memory_order_seq_cst); }
  void get_up() { state_.store(awake, std::memory_order_relaxed); }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&state_); }

  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace pdp::comm::shm
