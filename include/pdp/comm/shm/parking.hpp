#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include <pdp/comm/clock.hpp>

namespace pdp::comm::shm {

/// A word of shared memory on which a rank sleeps until another process wakes it. While the rank is awake, a wake-up only reads a cache
/// line that no rank writes meanwhile. The protocol is Dekker's: the sleeper announces its sleep, then checks once more; the other rank
/// publishes its data, then checks for a sleeper. Both use sequentially consistent order, or each could miss the other.
class Parking {
 public:
  /// How the rank sleeps: on this word, by a futex; or in a poll of its Pipe and other descriptors (see bell.hpp).
  enum State : std::uint32_t { awake, on_word, on_pipe };

  /// Marks the rank awake and returns how it slept. Call this after a sequentially consistent store of the value that the rank waits for.
  State rouse() {
    if (state_.load(std::memory_order_seq_cst) == awake) return awake;
    return static_cast<State>(state_.exchange(awake, std::memory_order_seq_cst));
  }
  /// Wakes a rank that slept on_word.
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
  /// Begin and end a sleep of another kind. After lie_down(), check once more for the awaited value before sleeping.
  void lie_down(State how) { state_.store(how, std::memory_order_seq_cst); }
  void get_up() { state_.store(awake, std::memory_order_relaxed); }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&state_); }

  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace pdp::comm::shm
