#pragma once

#include <cstdint>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// A token outside of a model's vocabulary.
class TokenError : public ConfigError {
 public:
  /// `sample` names the sample, as in "row 3 of a batch". `position`: that of the token in the sample. `vocabulary`: tokens of the model.
  TokenError(const std::string& sample, Index row, Index position, std::int64_t token, Index vocabulary);
  ~TokenError() override;

  /// Returns the number of the row in the batch, from 0.
  [[nodiscard]] Index row() const noexcept { return row_; }
  /// Returns the same error with another name for the sample.
  [[nodiscard]] TokenError of(const std::string& sample) const { return {sample, row_, position_, token_, vocabulary_}; }

 private:
  Index row_, position_;
  std::int64_t token_;
  Index vocabulary_;
};

/// The tokens whose vectors are the rows of a table: those from `first` on, of `vocabulary` tokens. A rank of a tensor-parallel group has
/// some of the rows of a whole table.
struct TokenRows {
  Index first = 0;
  Index vocabulary = 0;
};

/// Returns whether a model with `vocabulary` tokens has this one.
constexpr bool is_token(std::int32_t token, Index vocabulary) { return token >= 0 && token < vocabulary; }

/// Throws TokenError unless all tokens are from 0 to vocabulary - 1.
void check_tokens(Matrix<const std::int32_t> tokens, Index vocabulary);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/token.hpp>
#endif
