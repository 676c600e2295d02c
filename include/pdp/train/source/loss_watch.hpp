#pragma once

/// Definitions for pdp/train/loss_watch.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <cstdio>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/loss_watch.hpp>

namespace pdp::detail {

PDP_INLINE void LossWatch::report(double loss, std::int64_t step) {
  is_quiet_ = true;
  std::fputs(
      text("pdp: the loss of step ", step, " is ", is_nan(loss) ? "NaN" : "infinite",
           ", so the parameters may not be finite from then on; NonFinite::stop_on_loss, the default, stops at such a step and names "
           "the rank and the tensor, and NonFinite::skip leaves it out\n")
          .c_str(),
      stderr);
}

PDP_INLINE void LossWatch::report_evaluation(double loss, std::int64_t steps) {
  is_quiet_ = true;
  std::fputs(text("pdp: the loss of an evaluation after ", steps, steps == 1 ? " step" : " steps", " is ",
                  is_nan(loss) ? "NaN" : "infinite", ", so a sample or a parameter is not finite, or the outputs are too large\n")
                 .c_str(),
             stderr);
}

}  // namespace pdp::detail
