#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// A progress bar of an epoch: one line on a terminal, redrawn at most ten times a second and cleared at the end. If standard error is not
/// a terminal, it shows nothing.
class Progress {
 public:
  explicit Progress(bool wanted);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Draws the bar after `done` of `all` steps.
  void show(int epoch, Index done, Index all, double loss);

  /// Clears the bar.
  void wipe();

 private:
  bool shown_;
  bool drawn_ = false;
  std::int64_t last_ = 0;  // time of the last redraw, in nanoseconds of the steady clock
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/progress.hpp>
#endif
