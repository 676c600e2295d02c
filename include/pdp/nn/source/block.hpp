#pragma once

/// Definitions for pdp/nn/block.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

PDP_INLINE void a_layer_expects_another_width_than_the_one_before_it_gives(const char* layer, const Path& at, Index expected, Index found) {
  throw ShapeError{text("layer ", at.str(), " (", layer, ") expects ", expected, " values a sample, but its input has ", found,
                        "; make the two widths equal")};
}

}  // namespace pdp::nn
