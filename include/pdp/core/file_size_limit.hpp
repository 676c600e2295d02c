#pragma once

#include <signal.h>

namespace pdp {

/// Lets a write beyond the limit of a file's size (ulimit -f) fail with EFBIG, as one on a full disk fails with ENOSPC. By default the
/// system sends SIGXFSZ, which ends the process. A program's own handler stays. The handler is empty and not SIG_IGN, which programs that
/// this one starts would inherit.
inline void report_file_size_limit() {
  struct sigaction action {};
  if (::sigaction(SIGXFSZ, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace pdp
