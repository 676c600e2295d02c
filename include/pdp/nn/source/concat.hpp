#pragma once

/// Definitions for pdp/nn/concat.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/concat.hpp>

namespace pdp::nn {

PDP_INLINE void detail::the_branches_of_a_concat_give_shapes_that_do_not_fit(const Shape& first, const Shape& other, Index number,
                                                                             bool is_first) {
  throw ShapeError{text("nn::Concat joins samples of shape ", text(first), " with those of shape ", text(other), " from branch ", number,
                        "; all dimensions but the ", is_first ? "first" : "last", " must be equal")};
}

}  // namespace pdp::nn
