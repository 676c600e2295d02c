#pragma once

/// Definitions for pdp/core/label.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

PDP_INLINE LabelError::LabelError(const std::string& sample, Index row, std::int64_t label, Index outputs)
    : ConfigError{text(sample, " is of class ", label, ", but the model gives ", outputs, " outputs, for classes 0 to ", outputs - 1,
                       "; either the labels are damaged or the last layer is too narrow")},
      row_{row},
      label_{label},
      outputs_{outputs} {}
PDP_INLINE LabelError::~LabelError() = default;

PDP_INLINE void detail::refuse_label(Index row, std::int64_t label, Index logits) {
  throw LabelError{text("row ", row, " of a batch"), row, label, logits};
}

}  // namespace pdp
