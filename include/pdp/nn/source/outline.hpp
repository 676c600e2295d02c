#pragma once

/// Definitions for pdp/nn/outline.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

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

PDP_INLINE void a_model_has_two_layers_that_are_tied_to_its_embedding(const char* layer, const Path& at) {
  throw ConfigError{text("layer ", at.str(), " (", layer,
                         ") is the second layer of the model that is tied to its Embedding; a model has at ",
                         "most one, so use a Linear here")};
}

PDP_INLINE void a_tied_layer_does_not_fit_its_embedding(const char* layer, const Parameter& copy, const Parameter& of) {
  const std::string words = text("layer ", copy.layer.str(), " (", layer, ") shares the parameter of the model's first layer, ");
  if (copy.layer.is_frozen() != of.layer.is_frozen())
    throw ConfigError{text(words, "but one of the two is inside an nn::Frozen and the other is not; put both into it, or neither")};
  if (copy.row_part != of.row_part)
    throw ConfigError{text(words, "but has part ", copy.row_part.index, " of ", copy.row_part.count,
                           " of its rows, while that layer has part ", of.row_part.index, " of ", of.row_part.count,
                           "; divide both, with nn::VocabularyParallelEmbedding and nn::VocabularyParallelOutput, or neither")};
  if (copy.rows == of.rows && copy.cols == of.cols)
    throw ConfigError{text(
        words, "but that layer holds it in another order, divided by columns, or beside others; use nn::Embedding as the first layer")};
  throw ShapeError{text(words, "but has ", copy.rows, " vectors of ", copy.cols, " values, while that layer has ", of.rows, " of ", of.cols,
                        "; give both the same vocabulary and width")};
}

}  // namespace pdp::nn
