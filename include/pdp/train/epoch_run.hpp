#pragma once

#include <cstdint>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/progress.hpp>

namespace pdp {

namespace detail {

/// The default of fit()'s on_step: does nothing.
struct Unwatched {
  void operator()(std::int64_t, const engine::Totals&) const {}
};

}  // namespace detail

/// An epoch in progress: its time and its progress bar. Counts its steps and their totals in a Position, which it borrows.
class EpochRun {
 public:
  /// Continues the current epoch of `at`, which has `steps` steps.
  EpochRun(checkpoint::Position& at, Index steps, bool shows_progress);

  /// Adds the totals of a step that has ended. Returns whether it is the last one: must_stop() or ends().
  bool count(const engine::Totals& totals);
  /// Returns whether a rank has asked to stop the training.
  [[nodiscard]] bool must_stop() const { return stops_; }
  /// Returns whether a rank's callback, or the limit of steps, ends the training.
  [[nodiscard]] bool ends() const { return ends_; }
  /// Ends the epoch and its progress bar. The position is then the beginning of the next epoch. Returns the results.
  [[nodiscard]] Epoch end();

 private:
  static engine::Totals totals_of(const checkpoint::Position& at);

  checkpoint::Position* at_;
  Index steps_;
  bool stops_ = false, ends_ = false;
  Progress progress_;
  std::int64_t begin_;  // in nanoseconds of the steady clock
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/epoch_run.hpp>
#endif
