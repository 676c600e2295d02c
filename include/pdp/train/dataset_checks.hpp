#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::detail {

/// Returns how many samples, each of so many values, lie one after another. Throws ShapeError if the last one is cut short.
Index samples_in(std::size_t values, Index width);

/// Returns these samples.
template <class T>
Matrix<const T> rows_of(std::span<const T> x, Index width) {
  return {x.data(), samples_in(x.size(), width), width};
}

/// Throws what was wrong with the label of one of these samples of a dataset, with its number. `step`: none in an evaluation.
[[noreturn]] void refuse_label_of(const LabelError& error, std::span<const Index> samples, std::optional<std::int64_t> step);

/// Throws LabelError that names the sample of a dataset whose class is wrong. `step`: none in an evaluation.
template <class Loss, class Target>
void check_targets(const Loss& loss, std::span<const Target> targets, std::span<const Index> samples, Index outputs,
                   std::optional<std::int64_t> step) {
  if constexpr (requires { loss.check(targets, outputs); }) {
    try {
      loss.check(targets, outputs);
    } catch (const LabelError& error) {
      refuse_label_of(error, samples, step);
    }
  }
}

/// Throw ShapeError unless the model takes such samples, and the loss such targets.
void check_sample_shape(const Shape& sample, const Shape& input);
void check_target_shape(const Shape& target, Index wanted);

/// Returns the number of the model's outputs. Throws ShapeError if the model or the loss takes other samples or targets.
template <class TaskType, class Data>
Index check_shapes(const TaskType& task, const Shape& input, const Data& data) {
  check_sample_shape(data.sample_shape(), input);
  const nn::Outline model = nn::outline(task.model, input);
  const Index outputs = model.width(model.size());
  check_target_shape(data.target_shape(), task.loss.target_elements(outputs));
  return outputs;
}

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/dataset_checks.hpp>
#endif
