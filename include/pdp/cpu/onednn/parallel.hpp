#pragma once

namespace pdp::cpu::onednn {

// Both are null in a program without oneDNN; see product.hpp.

/// Whether there are threads to share: those of the OpenMP that oneDNN multiplies with. Others beside them would take the cores from them.
[[gnu::weak]] bool has_threads();

/// Whether the program has has_threads() and parallel(), and there are threads to share.
inline bool shares_threads() {
  const auto found = &has_threads;
  return found != nullptr && found();
}

/// Calls work(context) on so many of them at once, the calling one included, or on fewer, and returns when all have. has_threads() holds.
[[gnu::weak]] void parallel(int threads, void (*work)(void* context), void* context);

}  // namespace pdp::cpu::onednn
