#pragma once

/// Definitions for pdp/nn/reshape.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/reshape.hpp>

namespace pdp::nn {

PDP_INLINE void detail::the_extents_of_a_reshape_must_be_1_or_more(const Shape& shape) {
  throw ConfigError{text("nn::Reshape was given the shape ", text(shape), "; all extents must be 1 or more")};
}

}  // namespace pdp::nn
