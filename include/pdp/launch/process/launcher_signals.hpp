#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::launch {

/// Receives the signals that concern a launcher, as long as this object exists. They arrive at a descriptor, so one poll waits for signals
/// and for the reports of ranks. A signal that the program ignores or blocks (trap '' INT, nohup, a background job of a shell) stays
/// ignored or blocked, here and in the ranks.
class LauncherSignals {
 public:
  LauncherSignals() {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &before_);
    sigset_t taken;
    ::sigemptyset(&taken);
    ::sigaddset(&taken, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
      struct sigaction current {};
      ::sigaction(signal, nullptr, &current);
      const bool ignored = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_IGN;
      if (!ignored && ::sigismember(&before_, signal) == 0) ::sigaddset(&taken, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
    // If SIGCHLD is ignored, the exit statuses of children are lost.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, &children_before_);
    descriptor_ = comm::Descriptor{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (descriptor_) return;
    const int reason = errno;
    restore();
    throw ConfigError{text("the launcher cannot open a signalfd: ", comm::describe_system_error(reason))};
  }
  LauncherSignals(LauncherSignals&&) = delete;
  ~LauncherSignals() { restore(); }

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// Return the thread's signal mask and the disposition of SIGCHLD before the construction of this object.
  [[nodiscard]] const sigset_t& before() const { return before_; }
  [[nodiscard]] const struct sigaction& on_child_before() const { return children_before_; }
  /// Reads the pending signals. Returns SIGINT, SIGTERM or SIGUSR1 if one of them is pending, else 0.
  [[nodiscard]] int take() {
    int wanted = 0;
    signalfd_siginfo signal;
    while (::read(descriptor_.get(), &signal, sizeof signal) == sizeof signal)
      if (signal.ssi_signo != SIGCHLD) wanted = as_int(signal.ssi_signo);
    return wanted;
  }

 private:
  void restore() {
    ::sigaction(SIGCHLD, &children_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  sigset_t before_{};
  struct sigaction children_before_ {};
  comm::Descriptor descriptor_;
};

}  // namespace pdp::launch
