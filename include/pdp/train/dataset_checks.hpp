#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::detail {

/// Returns the samples, each of so many values, that lie one after another. Throws ShapeError if the last one is cut short.
template <class T>
Matrix<const T> rows_of(std::span<const T> x, Index width) {
  if (as_index(x.size()) % width != 0)
    throw ShapeError{text("a batch of ", x.size(), " values was given, which is no whole number of samples of ", width)};
  return {x.data(), as_index(x.size()) / width, width};
}

/// Throws LabelError that names the sample of a dataset whose class is wrong. `step`: none in an evaluation.
template <class Loss, class Target>
void check_targets(const Loss& loss, std::span<const Target> targets, std::span<const Index> samples, Index outputs,
                   std::optional<std::int64_t> step) {
  if constexpr (requires { loss.check(targets, outputs); }) {
    try {
      loss.check(targets, outputs);
    } catch (const LabelError& error) {
      const Index sample = samples[as_size(error.row())];
      throw error.of(text(step ? text("step ", *step) : "evaluation", ": sample ", sample, " of the dataset (counted from 0)"));
    }
  }
}

/// Returns the number of the model's outputs. Throws ShapeError if the model or the loss takes other samples or targets.
template <class TaskType, class Data>
Index check_shapes(const TaskType& task, const Shape& input, const Data& data) {
  if (data.sample_shape().elements() != input.elements())
    throw ShapeError{text("the dataset has samples of shape ", text(data.sample_shape()), ", but the model takes ", input.elements(),
                          " values a sample")};
  const nn::Outline model = nn::outline(task.model, input);
  const Index wanted = task.loss.target_elements(model.width(model.size()));
  if (data.target_shape().elements() != wanted)
    throw ShapeError{
        text("the dataset has targets of shape ", text(data.target_shape()), ", but the loss takes ", wanted, " elements for each sample")};
  return model.width(model.size());
}

}  // namespace pdp::detail
