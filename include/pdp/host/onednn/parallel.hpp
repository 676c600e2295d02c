#pragma once

namespace pdp::host::onednn {

/// Calls work(context) on so many threads at once, the calling one among them, or on fewer; those of the OpenMP that oneDNN multiplies
/// with, which two sets of threads would take the cores from. It returns when all have. False, and nothing is called, where there is no
/// OpenMP. Null in a program without pdp::onednn.
[[gnu::weak]] bool parallel(int threads, void (*work)(void* context), void* context);

}  // namespace pdp::host::onednn
