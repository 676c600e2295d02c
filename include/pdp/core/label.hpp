#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// A label, the class number of a sample, for which the model has no output.
class LabelError : public ConfigError {
 public:
  /// `sample` names the sample, as in "row 3 of a batch".
  LabelError(const std::string& sample, Index row, std::int64_t label, Index outputs);
  ~LabelError() override;

  /// Returns the number of the row in the batch, from 0.
  [[nodiscard]] Index row() const noexcept { return row_; }
  /// Returns the same error with another name for the sample.
  [[nodiscard]] LabelError of(const std::string& sample) const { return {sample, row_, label_, outputs_}; }

 private:
  Index row_;
  std::int64_t label_;
  Index outputs_;
};

namespace detail {
[[noreturn, gnu::cold]] void refuse_label(Index row, std::int64_t label, Index logits);
}  // namespace detail

/// Returns the class of a row. Throws LabelError if the class has no logit: if it is not in [0, logits).
inline Index label_of(std::span<const std::int32_t> classes, Index row, Index logits) {
  const std::int32_t label = classes[as_size(row)];
  if (label < 0 || label >= logits) detail::refuse_label(row, label, logits);
  return label;
}

/// Throws LabelError if a class has no logit, except for the class `ignored`.
inline void check_labels(std::span<const std::int32_t> classes, Index logits, Index ignored) {
  for (Index row = 0; row < as_index(classes.size()); ++row)
    if (classes[as_size(row)] != ignored) static_cast<void>(label_of(classes, row, logits));
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/label.hpp>
#endif
