#pragma once

#include <pdp/core/requirements.hpp>

namespace pdp::cpu::onednn {

// Both weak functions are null in a program without oneDNN; see product.hpp.

/// Returns whether oneDNN has OpenMP. pdp's loops then use OpenMP's threads, since a second set of threads would compete with them for the
/// cores.
[[gnu::weak]] bool has_threads();

/// Returns whether the program has has_threads() and parallel(), and has_threads() is true.
inline bool shares_threads() {
  const auto found = &has_threads;
  return found != nullptr && found();
}

/// Calls work(context) on `threads` threads at once or on fewer, the calling one included, and returns when all calls have returned.
/// Requires has_threads().
[[gnu::weak]] void parallel(int threads, void (*work)(void* context), void* context);

}  // namespace pdp::cpu::onednn
