#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/standard_streams.hpp>

namespace pdp {

/// One line on a terminal that shows how far an epoch is, drawn again a few times a second and wiped at the end. Where standard error is no
/// terminal it shows nothing.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_{wanted && isatty(STDERR_FILENO) == 1} {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { wipe(); }

  /// After `done` of `all` steps.
  void show(int epoch, Index done, Index all, double loss);

  void wipe();

 private:
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/progress.hpp>
#endif
