#pragma once

#include <sched.h>

#include <chrono>
#include <ctime>

#include <pdp/comm/transport.hpp>

namespace pdp::comm {

/// How a rank waits for something that each look may find: a few looks at once, for an answer that is nearly there; some more between which
/// it lets others run, as there may be more ranks than cores; then it must sleep, or it would take the core from the rank it waits for.
class Waiting {
 public:
  /// True while it is better to look again than to sleep.
  [[nodiscard]] bool look_again() {
    if (looks_ == spins + yields) return false;
    if (looks_++ >= spins) sched_yield();
    return true;
  }

 private:
  // A look at a socket costs about half a microsecond.
  static constexpr int spins = 20;
  static constexpr int yields = 20;

  int looks_ = 0;
};

/// What is left until a point in time, and zero after it: the form that ppoll and futexes take.
inline timespec time_left(TimePoint until) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
  if (left <= 0) return {};
  return {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
}

}  // namespace pdp::comm
