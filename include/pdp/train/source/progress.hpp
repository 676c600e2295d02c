#pragma once

/// Definitions for pdp/train/progress.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/train/progress.hpp>

namespace pdp {

PDP_INLINE Progress::Progress(bool wanted) : shown_{wanted && isatty(STDERR_FILENO) == 1} {}

PDP_INLINE Progress::~Progress() { wipe(); }

PDP_INLINE void Progress::show(int epoch, Index done, Index all, double loss) {
  if (!shown_) return;
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  if (drawn_ && now - std::chrono::nanoseconds{last_} < std::chrono::milliseconds{100}) return;
  last_ = now.count();
  drawn_ = true;
  constexpr Index width = 30;
  const Index filled = all > 0 ? width * done / all : width;
  std::string bar(as_size(filled), '#');
  bar.resize(width, '.');
  clear_terminal_line();
  std::fputs(fmt::format("epoch {} [{}] {}/{} loss {:.4f}", epoch, bar, done, all, loss).c_str(), stderr);
}

PDP_INLINE void Progress::wipe() {
  if (drawn_) clear_terminal_line();
  drawn_ = false;
}

}  // namespace pdp
