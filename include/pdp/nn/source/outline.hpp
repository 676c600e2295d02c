#pragma once

/// Definitions for pdp/nn/outline.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

PDP_INLINE void a_model_ends_in_what_no_loss_can_take(Placement given) {
  throw ConfigError{text("the model's output is ", name(given), " over the ranks of a tensor-parallel group; ",
                         given == Placement::partial    ? "end it with nn::AllReduce"
                         : given == Placement::channels ? "end it with a layer that takes channels, such as nn::InputParallelConv2d, and "
                                                          "nn::AllReduce"
                                                        : "remove its last nn::Replicate, or put nn::ColumnParallel behind it")};
}

}  // namespace pdp::nn
