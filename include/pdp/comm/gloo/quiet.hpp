#pragma once

#include <signal.h>

#include <ctime>
#include <exception>

#include <pdp/core/requirements.hpp>

namespace pdp::comm::gloo {

/// Blocks SIGPIPE in the current thread while this object exists. Gloo's writes raise SIGPIPE if the peer is gone, and by default it ends
/// the process. A thread that is started meanwhile inherits the block for its whole life.
class Quiet {
 public:
  /// Blocks SIGPIPE until the thread ends. For threads of pdp.
  static void this_thread() {
    const sigset_t pipe = only_pipe();
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  }

  Quiet() {
    const sigset_t pipe = only_pipe();
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  Quiet(Quiet&&) = delete;
  ~Quiet() {
    if (std::uncaught_exceptions() > exceptions_) take();
    if (::sigismember(&before_, SIGPIPE) == 0) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// Discards a pending SIGPIPE. Call this after catching an exception of Gloo. A call of Gloo that does not throw has not raised the
  /// signal.
  void take() const {
    const sigset_t pipe = only_pipe();
    const timespec at_once{};
    ::sigtimedwait(&pipe, nullptr, &at_once);
  }

 private:
  static sigset_t only_pipe() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    return set;
  }

  sigset_t before_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace pdp::comm::gloo
