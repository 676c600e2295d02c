#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/token.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/loss/output_rows.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::detail {

/// Returns the number of samples of `width` values in a list of `values` values. Throws ShapeError if that is not a whole number.
Index samples_in(std::size_t values, Index width);

/// Returns the samples in `x` as a matrix [samples, width]. Throws ShapeError as samples_in() does.
template <class T>
Matrix<const T> rows_of(std::span<const T> x, Index width) {
  return {x.data(), samples_in(x.size(), width), width};
}

/// Throws the error again, with the number of the sample in the dataset. `samples`: the numbers of the batch's samples in the dataset.
/// `positions`: labels of each sample. `step`: number of the step; nullopt in an evaluation.
[[noreturn]] void refuse_label_of(const LabelError& error, std::span<const Index> samples, Index positions,
                                  std::optional<std::int64_t> step);

/// Throws LabelError, with the number of the sample in the dataset, if a class is out of range. `samples` and `step`: as for
/// refuse_label_of(). `rows`: those of the loss in a sample's output.
template <class Loss, class Target>
void check_targets(const Loss& loss, std::span<const Target> targets, std::span<const Index> samples, const loss::OutputRows& rows,
                   std::optional<std::int64_t> step) {
  if constexpr (requires { loss.check(targets, rows.outputs); }) {
    try {
      loss.check(targets, rows.outputs);
    } catch (const LabelError& error) {
      refuse_label_of(error, samples, rows.count, step);
    }
  }
}

/// Throws the error again, with the number of the sample in the dataset.
[[noreturn]] void refuse_token_of(const TokenError& error, std::span<const Index> samples, std::optional<std::int64_t> step);

/// Throws TokenError, with the number of the sample in the dataset, if the first layer of `stage` has no row for a token.
template <class Stage, class Sample>
void check_inputs(const Stage& stage, Matrix<const Sample> x, std::span<const Index> samples, std::optional<std::int64_t> step) {
  if constexpr (std::same_as<Sample, std::int32_t>) {
    try {
      stage.check_tokens(x);
    } catch (const TokenError& error) {
      refuse_token_of(error, samples, step);
    }
  }
}

/// Does not compile if the samples of a dataset are tokens and the model takes numbers, or the other way round.
template <class Data, class Sample>
constexpr void check_sample_type() {
  constexpr bool are_tokens = std::same_as<data::SampleOf<Data>, std::int32_t>, takes_tokens = std::same_as<Sample, std::int32_t>;
  static_assert(!are_tokens || takes_tokens,
                "pdp: the samples of this dataset are tokens (std::int32_t), but the model takes numbers; its first layer must take "
                "tokens, as nn::Embedding does");
  static_assert(are_tokens || !takes_tokens,
                "pdp: the model takes tokens, but the samples of this dataset are numbers; a dataset of tokens declares `using Sample = "
                "std::int32_t`");
}

/// Throw ShapeError unless the samples have as many values as the model takes, and the targets as many elements as the loss takes.
void check_sample_shape(const Shape& sample, const Shape& input);
void check_target_shape(const Shape& target, Index wanted);

/// Returns the rows of the loss in a sample's output. Throws ShapeError if the samples do not fit the model or the targets do not fit the
/// loss.
template <class TaskType, class Data>
loss::OutputRows check_shapes(const TaskType& task, const Shape& input, const Data& data) {
  check_sample_shape(data.sample_shape(), input);
  const auto rows = loss::output_rows<decltype(TaskType::loss)>(nn::outline(task.model, input).output);
  check_target_shape(data.target_shape(), rows.target_elements(task.loss));
  return rows;
}

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/dataset_checks.hpp>
#endif
