#pragma once

/// Definitions for pdp/nn/outline.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

PDP_INLINE void a_layer_does_not_take_what_the_one_before_it_leaves(const char* layer, const Path& at, Placement given) {
  throw ConfigError{text("layer ", at.str(), " (", layer, ") does not accept its input, which is ", name(given),
                         " over the ranks of a tensor-parallel group; put AllReduce behind partial outputs (RowParallel), Replicate before "
                         "ColumnParallel, and "
                         "nothing but elementwise layers between ColumnParallel and RowParallel")};
}
PDP_INLINE void a_model_ends_in_what_no_loss_can_take(Placement given) {
  throw ConfigError{text(
      "the model's output is ", name(given), " over the ranks of a tensor-parallel group; ",
      given == Placement::partial ? "end it with nn::AllReduce" : "remove its last nn::Replicate, or put nn::ColumnParallel behind it")};
}

}  // namespace pdp::nn
