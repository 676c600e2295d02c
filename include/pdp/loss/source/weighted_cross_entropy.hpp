#pragma once

/// Definitions for pdp/loss/weighted_cross_entropy.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <span>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/weighted_cross_entropy.hpp>

namespace pdp::loss::detail {

PDP_INLINE double sum_of_weights(std::span<const float> weights) {
  double sum = 0;
  for (std::size_t at = 0; at < weights.size(); ++at) {
    const auto weight = static_cast<double>(weights[at]);
    if (!is_finite(weight) || weight < 0)
      throw ConfigError{text("class ", at, " has the weight ", weight, "; expected a finite number of at least 0")};
    sum += weight;
  }
  if (sum == 0) throw ConfigError{text("all ", weights.size(), " classes have the weight 0, so no row would count")};
  return sum;
}

PDP_INLINE void check_classes(Index classes, Index outputs) {
  if (outputs != classes)
    throw ConfigError{text("the loss has weights for ", classes, " classes, but the model has ", outputs, " outputs")};
}

}  // namespace pdp::loss::detail
