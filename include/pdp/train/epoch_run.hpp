#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/progress.hpp>

namespace pdp {

namespace detail {

/// In place of fit()'s on_step.
struct Unwatched {
  void operator()(std::int64_t, const engine::Totals&) const {}
};

}  // namespace detail

/// One epoch while it runs: what its steps have found, its time, and the progress that is shown.
class EpochRun {
 public:
  EpochRun(int epoch, Index steps, bool shows_progress);

  /// A step is through.
  void count(const engine::Totals& totals);
  [[nodiscard]] Epoch end();

 private:
  int epoch_;
  Index steps_, done_ = 0;
  engine::Totals sums_{};
  Progress progress_;
  std::int64_t begin_;  // in nanoseconds of a steady clock
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/epoch_run.hpp>
#endif
