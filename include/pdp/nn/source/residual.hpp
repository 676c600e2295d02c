#pragma once

/// Definitions for pdp/nn/residual.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/residual.hpp>

namespace pdp::nn::detail {

PDP_INLINE void a_residual_block_gives_another_width_than_it_takes(Index in, Index out) {
  throw ShapeError{text("a Residual block takes ", in, " values a sample and gives ", out, "; the two must be equal, as they are added")};
}

}  // namespace pdp::nn::detail
