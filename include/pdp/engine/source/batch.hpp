#pragma once

/// Definitions for pdp/engine/batch.hpp; see pdp/core/separate_compilation.hpp.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::engine {

PDP_INLINE StepNumbers first_numbers(std::int64_t steps, const StepBegin& step, Index of_sample) {
  return {.info = {steps, step.lr_factor},
          .scale = loss_factor(step.global_rows),
          .row_scale = sample_factor(step.global_rows, of_sample),
          .stops = step.report.stops ? 1.0 : 0.0,
          .saves = step.report.saves ? 1.0 : 0.0,
          .ends = step.report.ends ? 1.0 : 0.0};
}

PDP_INLINE Totals totals_of(const StepNumbers& numbers, const RowTotals& rows, double seconds) {
  const auto ranks = [](double sum) { return as_int(std::lround(sum)); };
  return {.loss = numbers.sums.loss,
          .correct = numbers.sums.correct,
          .rows = as_double(rows.counted),
          .gradient_norm = numbers.norm,
          .skipped = numbers.skips,
          .loss_scale = numbers.loss_scale,
          .stops = ranks(numbers.stops),
          .saves = ranks(numbers.saves),
          .ends = ranks(numbers.ends),
          .seconds = seconds,
          .ignored = as_double(rows.ignored),
          .weight = rows.weight};
}

PDP_INLINE void check_batch(Index rows, Index cols, Index limit, Index width) {
  if (rows > limit)
    throw ShapeError{text("the batch has ", rows, " rows, but there is memory for at most ", limit,
                          "; raise the trainer's global_batch, or split the batch")};
  if (rows > 0 && cols != width) throw ShapeError{text("the samples have ", cols, " values, but the model expects ", width)};
}

PDP_INLINE void check_sums(const nn::Outline& model, Index rows) {
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    if (rows * model.layers[layer].batch_values == 1 && !model.layers[layer].is_frozen) {
      throw ConfigError{text("layer ", layer,
                             " of the model (counted from 0) normalises each channel with its mean and variance in the batch, but "
                             "the batch has a single row, of one value of a channel; make the last batch of an epoch larger, by another "
                             "global_batch, or use GroupNorm")};
    }
  }
}

PDP_INLINE void check_targets(Index rows, Index elements, Index width) {
  if (elements != rows * width)
    throw ShapeError{text("a batch of ", rows, " rows has ", elements, " target elements; expected ", rows * width)};
}

}  // namespace pdp::engine
