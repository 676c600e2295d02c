#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// One line on a terminal that shows how far an epoch is, drawn again a few times a second and wiped at the end. Where standard error is no
/// terminal it shows nothing.
class Progress {
 public:
  explicit Progress(bool wanted);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// After `done` of `all` steps.
  void show(int epoch, Index done, Index all, double loss);

  void wipe();

 private:
  bool shown_;
  bool drawn_ = false;
  std::int64_t last_ = 0;  // when it was drawn, in nanoseconds of a steady clock
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/progress.hpp>
#endif
