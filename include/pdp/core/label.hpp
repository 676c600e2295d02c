#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// The class of a row. Throws ConfigError where there is no logit for it.
inline Index label_of(std::span<const std::int32_t> classes, Index row, Index logits) {
  const std::int32_t label = classes[static_cast<std::size_t>(row)];
  if (label < 0 || label >= logits)
    throw ConfigError{text("row ", row, " of a batch is of class ", label, ", but the model gives ", logits, " outputs, for classes 0 to ",
                           logits - 1, "; either the labels are damaged or the last layer is too narrow")};
  return label;
}

}  // namespace pdp
