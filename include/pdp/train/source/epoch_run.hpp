#pragma once

/// Definitions for pdp/train/epoch_run.hpp; see pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/train/epoch_run.hpp>
#include <pdp/train/log.hpp>

namespace pdp {

/// Returns the totals of the steps of the current epoch.
PDP_INLINE engine::Totals EpochRun::totals_of(const checkpoint::Position& at) {
  return {.loss = at.epoch_loss, .correct = at.epoch_correct, .rows = at.epoch_rows, .weight = at.epoch_weight};
}

PDP_INLINE EpochRun::EpochRun(checkpoint::Position& at, Index steps, bool shows_progress)
    : at_{&at},
      steps_{steps},
      progress_{shows_progress},
      begin_{std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count()} {}

PDP_INLINE bool EpochRun::count(const engine::Totals& totals) {
  if (!totals.skipped) {  // the loss of a skipped step is usually not a number
    at_->epoch_loss += totals.loss;
    at_->epoch_correct += totals.correct;
    at_->epoch_rows += totals.rows;
    at_->epoch_weight += totals.weight;
  }
  progress_.show(as_int(at_->epoch), ++at_->batch, steps_, totals_of(*at_).mean_loss());
  stops_ = stops_ || totals.stops > 0;
  ends_ = ends_ || totals.ends > 0;
  return stops_ || ends_;
}

PDP_INLINE Epoch EpochRun::end() {
  progress_.wipe();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now().time_since_epoch() - std::chrono::nanoseconds{begin_};
  const engine::Totals sums = totals_of(*at_);
  Epoch ended{as_int(at_->epoch), sums.mean_loss(), sums.accuracy(), seconds.count()};
  ++at_->epoch;
  at_->batch = 0;
  at_->epoch_loss = at_->epoch_correct = at_->epoch_rows = at_->epoch_weight = 0;
  return ended;
}

}  // namespace pdp
