#pragma once

/// Definitions for pdp/train/loss_watch.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <cstdio>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/loss_watch.hpp>

namespace pdp::detail {

PDP_INLINE void LossWatch::report_if_not_finite(const engine::Totals& totals, std::int64_t step) {
  if (is_finite(totals.loss)) return;
  is_quiet_ = true;
  std::fputs(text("pdp: the loss of step ", step, " is ", totals.loss,
                  ", so the parameters may not be finite from then on; train with .non_finite = pdp::plan::NonFinite::stop to learn the "
                  "rank and the tensor, or with NonFinite::skip to leave such steps out\n")
                 .c_str(),
             stderr);
}

}  // namespace pdp::detail
