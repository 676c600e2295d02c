#pragma once

/// Definitions for pdp/core/token.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/token.hpp>

namespace pdp {

PDP_INLINE TokenError::TokenError(const std::string& sample, Index row, Index position, std::int64_t token, Index vocabulary)
    : ConfigError{text("position ", position, " of ", sample, " is token ", token, ", but the model has tokens 0 to ", vocabulary - 1,
                       "; either the tokens are damaged or the vocabulary of the embedding is too small")},
      row_{row},
      position_{position},
      token_{token},
      vocabulary_{vocabulary} {}
PDP_INLINE TokenError::~TokenError() = default;

PDP_INLINE void check_tokens(Matrix<const std::int32_t> tokens, Index vocabulary) {
  const auto all = tokens.values();
  const auto wrong = std::ranges::find_if_not(all, [&](std::int32_t token) { return is_token(token, vocabulary); });
  if (wrong == all.end()) return;
  const Index at = wrong - all.begin(), row = at / tokens.cols;
  throw TokenError{text("row ", row, " of a batch"), row, at % tokens.cols, *wrong, vocabulary};
}

}  // namespace pdp
