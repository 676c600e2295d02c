#pragma once

/// Definitions for pdp/nn/divided.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn::detail {

PDP_INLINE void a_model_has_no_such_part(Part part) {
  throw ConfigError{text("expected the index of a model's part to be at least 0 and below the number of parts, found index ", part.index,
                         " of ", part.count, " parts")};
}
PDP_INLINE void a_model_has_nothing_to_divide() {
  throw ConfigError{
      "tensor parallelism needs two nn::Linear with only elementwise layers between them, two nn::Conv2d whose channels can be divided, an "
      "nn::MultiHeadAttention or an nn::Embedding whose tokens can be divided, but the model has none of them; choose another strategy, or "
      "write nn::ColumnParallel and nn::RowParallel where they should be"};
}

}  // namespace pdp::nn::detail
