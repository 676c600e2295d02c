#pragma once

/// Definitions for pdp/launch/process/stack.hpp; see pdp/core/separate_compilation.hpp.

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/stack.hpp>

namespace pdp::launch {

PDP_INLINE void widen_thread_stacks() {
  constexpr std::size_t least = 8 * 1024 * 1024;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t bytes = 0;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < least && ::pthread_attr_setstacksize(&attributes, least) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

PDP_INLINE void widen_process_stack() {
  constexpr rlim_t wanted = 8 * 1024 * 1024, least = 512 * 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= wanted) return;  // RLIM_INFINITY is the largest value
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_STACK, &limit);
  ::getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < least)
    throw ConfigError{text("the stack of this process is limited to ", limit.rlim_cur / 1024, " KiB, but a rank needs ", least / 1024,
                           " KiB; raise the limit (ulimit -s), or run the ranks as threads (--threads), which have stacks of their own")};
}

}  // namespace pdp::launch
