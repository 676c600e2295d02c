#pragma once

/// Definitions for pdp/nn/block.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/misfit.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

PDP_INLINE void a_layer_expects_another_width_than_the_one_before_it_gives(const char* layer, const Path& at, const char* before,
                                                                           const Shape& input, const Misfit& misfit) {
  const std::string from = *before == '\0' ? "" : text(", the output of ", before);
  throw ShapeError{text("layer ", at.str(), " (", layer, ") expects ", misfit.is_least ? "at least " : "", misfit.expected, " ", misfit.of,
                        ", but its input has ", misfit.found, " (shape ", text(input), from, "); ",
                        misfit.is_least ? "give it a larger input" : "make the two equal")};
}

}  // namespace pdp::nn
