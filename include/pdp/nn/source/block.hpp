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
  throw ShapeError{text("layer ", at.str(), " (", layer, ") expects ",
                        misfit.is_least  ? "at least "
                        : misfit.is_most ? "at most "
                                         : "",
                        misfit.expected, " ", misfit.of, ", but its input has ", misfit.found, " (shape ", text(input), from, "); ",
                        misfit.is_least  ? "give it a larger input"
                        : misfit.is_most ? "give it a smaller input"
                                         : "make the two equal")};
}

PDP_INLINE void only_the_first_layer_of_a_model_can_take_tokens(const char* layer, const Path& at, const char* before) {
  throw ConfigError{text("layer ", at.str(), " (", layer, ") takes tokens, but its input is the output of ", before,
                         "; only the first layer of a model can take tokens")};
}

}  // namespace pdp::nn
