#pragma once

/// Definitions for pdp/nn/dropout.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/dropout.hpp>

namespace pdp::nn {

PDP_INLINE void detail::dropout_needs_a_probability_from_0_to_below_1(float probability) {
  throw ConfigError{text("nn::Dropout was given the probability ", static_cast<double>(probability), "; give it one from 0 to below 1")};
}

}  // namespace pdp::nn
