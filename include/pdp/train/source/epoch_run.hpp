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

PDP_INLINE EpochRun::EpochRun(int epoch, Index steps, bool shows_progress)
    : epoch_{epoch},
      steps_{steps},
      progress_{shows_progress},
      begin_{std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count()} {}

PDP_INLINE void EpochRun::count(const engine::Totals& totals) {
  if (!totals.skipped) {  // the loss of a skipped step is usually not a number
    sums_.loss += totals.loss;
    sums_.correct += totals.correct;
    sums_.rows += totals.rows;
  }
  progress_.show(epoch_, ++done_, steps_, sums_.mean_loss());
}

PDP_INLINE Epoch EpochRun::end() {
  progress_.wipe();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now().time_since_epoch() - std::chrono::nanoseconds{begin_};
  return Epoch{epoch_, sums_.mean_loss(), sums_.accuracy(), seconds.count()};
}

}  // namespace pdp
