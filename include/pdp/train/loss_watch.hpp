#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/batch.hpp>

namespace pdp::detail {

/// Reports on standard error the first step of a training whose loss is not finite. Rank 0 reports it, since all ranks have the same
/// totals.
class LossWatch {
 public:
  explicit LossWatch(int rank) : is_quiet_{rank != 0} {}

  /// Takes the totals of a step. A step that was skipped is none of the training.
  void take(const engine::Totals& totals, std::int64_t step) {
    if (!is_quiet_ && !totals.skipped) report_if_not_finite(totals, step);
  }

 private:
  void report_if_not_finite(const engine::Totals& totals, std::int64_t step);

  bool is_quiet_;
};

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/loss_watch.hpp>
#endif
