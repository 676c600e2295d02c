#pragma once

#include <signal.h>

#include <concepts>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// Blocks all signals in the calling thread until it is destroyed. A thread that is started in between blocks them too, so signals reach
/// only the threads of the program itself.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(BlockedSignals&&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};
static_assert(!std::movable<BlockedSignals>);

}  // namespace pdp::comm
