#pragma once

namespace pdp::host::onednn {

// Both are null in a program without pdp::onednn.

/// Whether there are threads to share: those of the OpenMP that oneDNN multiplies with. Others beside them would take the cores from them.
[[gnu::weak]] bool has_threads();

/// Calls work(context) on so many of them at once, the calling one included, or on fewer, and returns when all have. has_threads() holds.
[[gnu::weak]] void parallel(int threads, void (*work)(void* context), void* context);

}  // namespace pdp::host::onednn
