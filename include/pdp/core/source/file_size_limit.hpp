#pragma once

/// Definitions for pdp/core/file_size_limit.hpp; see pdp/core/separate_compilation.hpp.

#include <signal.h>

#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp {

PDP_INLINE void report_file_size_limit() {
  struct sigaction action {};
  if (::sigaction(SIGXFSZ, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace pdp
