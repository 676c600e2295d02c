#pragma once

#include <sched.h>

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

}  // namespace pdp::comm
