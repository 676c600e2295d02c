#pragma once

/// Definitions for pdp/loss/binary_cross_entropy.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/binary_cross_entropy.hpp>

namespace pdp::loss {

PDP_INLINE void detail::refuse_probability(Index row, Index output, double target) {
  throw ConfigError{text("row ", row, " of a batch has the target ", target, " for output ", output,
                         "; BinaryCrossEntropy takes targets from 0 to 1", is_nan(target) ? ", and NaN with .ignore_nan = true" : "")};
}

}  // namespace pdp::loss
