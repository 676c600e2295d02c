#pragma once

/// Definitions for pdp/nn/placement.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

PDP_INLINE void a_layer_does_not_take_what_the_one_before_it_leaves(const char* layer, const Path& at, Placement given) {
  throw ConfigError{text("layer ", at.str(), " (", layer, ") does not accept its input, which is ", name(given),
                         " over the ranks of a tensor-parallel group; put AllReduce behind partial outputs (such as those of RowParallel), "
                         "Replicate before ColumnParallel and the like, nothing but elementwise layers between ColumnParallel and "
                         "RowParallel, and only layers that keep channels apart between OutputParallelConv2d and InputParallelConv2d")};
}
PDP_INLINE void detail::the_block_of_a_layer_does_not_give_its_output_in_full(Placement given) {
  throw ConfigError{
      text("the output of a block inside Residual, Sum or Concat is ", name(given),
           " over the ranks of a tensor-parallel group; end the block with ",
           given == Placement::partial ? "nn::AllReduce" : "a layer that adds up, such as nn::RowParallel, and nn::AllReduce")};
}

}  // namespace pdp::nn
