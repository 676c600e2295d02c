#pragma once

#include <cstdint>

#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/batch.hpp>

namespace pdp::detail {

/// Reports on standard error the first loss of a training that is not finite, unless it ends the training. Rank 0 reports it, since all
/// ranks have the same totals.
class LossWatch {
 public:
  explicit LossWatch(int rank) : is_quiet_{rank != 0} {}

  /// Takes the totals of a step. A step that was skipped is none of the training.
  void take(const engine::Totals& totals, std::int64_t step) {
    if (!is_quiet_ && !totals.skipped && !is_finite(totals.loss)) report(totals.loss, step);
  }
  /// Takes the loss of an evaluation after some steps.
  void take_evaluation(double loss, std::int64_t steps) {
    if (!is_quiet_ && !is_finite(loss)) report_evaluation(loss, steps);
  }

 private:
  void report(double loss, std::int64_t step);
  void report_evaluation(double loss, std::int64_t steps);

  bool is_quiet_;
};

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/loss_watch.hpp>
#endif
