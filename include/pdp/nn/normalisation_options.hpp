#pragma once

#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::nn::detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_eps_of_a_normalisation_must_be_0_or_more(const char* layer, double eps);
[[noreturn]] void the_momentum_of_a_batch_norm_must_be_from_0_to_1(double momentum);

/// Throws ConfigError unless eps is a finite number of 0 or more. In a constant, this is a compile error.
constexpr void check_eps(const char* layer, double eps) {
  if (!is_finite(eps) || eps < 0) the_eps_of_a_normalisation_must_be_0_or_more(layer, eps);
}
/// Throws ConfigError unless 0 <= momentum <= 1. In a constant, this is a compile error.
constexpr void check_momentum(double momentum) {
  if (!is_finite(momentum) || momentum < 0 || momentum > 1) the_momentum_of_a_batch_norm_must_be_from_0_to_1(momentum);
}

}  // namespace pdp::nn::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/normalisation_options.hpp>
#endif
