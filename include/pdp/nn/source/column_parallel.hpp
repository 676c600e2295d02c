#pragma once

/// Definitions for pdp/nn/column_parallel.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

PDP_INLINE void a_width_cannot_be_divided_evenly(Index width, int ranks, const Path& at, const char* layer, const char* what) {
  throw ShapeError{text("layer ", at.str(), " (", layer, ") has ", width, " ", what, ", which cannot be divided evenly over the ", ranks,
                        " ranks of a tensor-parallel group; choose a number that is a multiple of ", ranks,
                        ", or a tensor axis whose size divides it")};
}

}  // namespace pdp::nn
