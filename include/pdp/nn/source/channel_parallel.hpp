#pragma once

/// Definitions for pdp/nn/channel_parallel.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/channel_parallel.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn::detail {

PDP_INLINE void a_convolution_of_several_groups_cannot_be_divided_by_channels(const Path& at, const char* layer, Index groups) {
  throw ShapeError{text("layer ", at.str(), " (", layer, ") has ", groups,
                        " groups of channels, but only a convolution of one group can be divided over a tensor-parallel group; leave it "
                        "whole, as nn::Conv2d")};
}

}  // namespace pdp::nn::detail
