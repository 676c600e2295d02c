#pragma once

/// Definitions for pdp/train/dataset_checks.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/token.hpp>
#include <pdp/train/dataset_checks.hpp>

namespace pdp::detail {

PDP_INLINE Index samples_in(std::size_t values, Index width) {
  if (as_index(values) % width != 0)
    throw ShapeError{text("the batch has ", values, " values, which is not a multiple of the sample size ", width)};
  return as_index(values) / width;
}

PDP_INLINE void refuse_label_of(const LabelError& error, std::span<const Index> samples, Index positions,
                                std::optional<std::int64_t> step) {
  const Index sample = samples[as_size(error.row() / positions)];
  const std::string position = positions > 1 ? text("position ", error.row() % positions, " of ") : "";
  throw error.of(text(step ? text("step ", *step) : "evaluation", ": ", position, "sample ", sample, " of the dataset (counted from 0)"));
}

PDP_INLINE void refuse_token_of(const TokenError& error, std::span<const Index> samples, std::optional<std::int64_t> step) {
  throw error.of(text("sample ", samples[as_size(error.row())], " of the dataset (counted from 0), in ",
                      step ? text("step ", *step) : std::string{"an evaluation"}));
}

PDP_INLINE void check_sample_shape(const Shape& sample, const Shape& input) {
  if (sample.elements() != input.elements())
    throw ShapeError{text(
        "the dataset has samples of shape ", text(sample), ", but the model takes ", input.elements(), " values a sample",
        sample.last() == input.elements() ? "; give the trainer the shape of a sample in its options, as in {.input = Shape{8, 64}}" : "")};
}

PDP_INLINE void check_target_shape(const Shape& target, Index wanted) {
  if (target.elements() != wanted)
    throw ShapeError{text("the dataset has targets of shape ", text(target), ", but the loss takes ", wanted, " elements for each sample")};
}

}  // namespace pdp::detail
