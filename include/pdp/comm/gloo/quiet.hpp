#pragma once

#include <signal.h>

#include <ctime>
#include <exception>

namespace pdp::comm::gloo {

/// Holds back SIGPIPE in this thread. Gloo writes to connections in a way that raises it where the peer has gone, and its default is to end
/// the process. A thread that is started meanwhile holds it back for good.
class Quiet {
 public:
  /// For a thread of pdp's own: until it ends.
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

  /// Takes a signal that has been raised meanwhile, for whoever catches what a call of Gloo's has thrown: one that does not throw has not
  /// written in vain.
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
