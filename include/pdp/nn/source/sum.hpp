#pragma once

/// Definitions for pdp/nn/sum.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/sum.hpp>

namespace pdp::nn {

PDP_INLINE void detail::the_branches_of_a_sum_give_different_shapes(const Shape& first, const Shape& other, Index number) {
  throw ShapeError{text("nn::Sum adds samples of shape ", text(first), " from its first branch and of shape ", text(other), " from branch ",
                        number, "; the two must be equal")};
}

}  // namespace pdp::nn
