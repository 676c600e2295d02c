#pragma once

/// Definitions for pdp/nn/normalisation_options.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/normalisation_options.hpp>

namespace pdp::nn {

PDP_INLINE void detail::the_eps_of_a_normalisation_must_be_0_or_more(const char* layer, double eps) {
  throw ConfigError{text("nn::", layer, " has eps ", eps, "; give it a finite number of 0 or more")};
}
PDP_INLINE void detail::the_momentum_of_a_batch_norm_must_be_from_0_to_1(double momentum) {
  throw ConfigError{text("nn::BatchNorm has momentum ", momentum, "; give it a number from 0 to 1")};
}

}  // namespace pdp::nn
