#pragma once

#include <sched.h>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// The polling policy of a rank that waits. It first spins, for results that come soon. Then it yields after each poll, since there may be
/// more ranks than cores. After that the rank must sleep, or it would keep the core from the rank that it waits for.
class Waiting {
 public:
  /// Returns whether to poll again rather than sleep. May yield the core.
  [[nodiscard]] bool look_again() {
    if (looks_ == spins + yields) return false;
    if (looks_++ >= spins) sched_yield();
    return true;
  }

 private:
  // Polling a socket costs about half a microsecond.
  static constexpr int spins = 20;
  static constexpr int yields = 20;

  int looks_ = 0;
};

}  // namespace pdp::comm
