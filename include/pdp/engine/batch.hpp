#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::engine {

/// A rank's share of a batch for one step: any number of rows up to the engine's limit, including none.
template <class Sample, class Target>
struct Batch {
  Matrix<const Sample> x;
  std::span<const Target> targets;
  Index global_rows = 0;   // over all ranks; each rank's share must follow from it. 0: not known, so the ranks count their rows
  bool on_device = false;  // whether x and targets lie in device memory, not in host memory
  std::span<const Index> share_rows{};  // rows of each share, if they do not follow from global_rows; the same on all ranks
};

/// Numbers of rows of the loss: samples, or positions of samples (see loss::OutputRows). All of them count unless the loss ignores some
/// (see loss::IgnoresRows).
struct RowTotals {
  Index counted = 0;
  Index ignored = 0;
  double weight = 0;  // of the rows that count; 0 if the loss does not weigh rows (see loss::WeighsRows)

  [[nodiscard]] constexpr Index all() const { return counted + ignored; }
  /// Returns the number by which the sum of the loss is divided for the mean; the rows that count if their weights are all 0.
  [[nodiscard]] constexpr double divisor() const { return weight > 0 ? weight : as_double(counted); }
};

/// The rows of a step on one rank.
struct OwnRows {
  Index all = 0;            // of its share, samples
  RowTotals adds{};         // the rows that this rank adds to those of all ranks
  bool may_ignore = false;  // whether the loss may ignore rows
  Index of_sample = 1;      // rows of the loss in each sample
  bool weighs = false;      // whether the loss weighs rows

  /// Returns whether the rows that count, or their weights, depend on targets.
  [[nodiscard]] constexpr bool look_at_targets() const { return may_ignore || weighs; }
};

/// Returns the factors by which the loss is averaged over rows, and a buffer's change over samples of `of_sample` rows. 0 if there are no
/// rows, so that all gradients are zero.
[[nodiscard]] constexpr double loss_factor(const RowTotals& rows) { return rows.divisor() > 0 ? 1 / rows.divisor() : 0; }
[[nodiscard]] constexpr double sample_factor(const RowTotals& rows, Index of_sample) {
  return rows.all() > 0 ? as_double(of_sample) / as_double(rows.all()) : 0;
}

/// A rank's message to the others, which travels with the totals of a step.
struct RankReport {
  bool stops = false;  // this rank asks to stop the training
  bool saves = false;  // this rank is busy with a checkpoint
  bool ends = false;   // a callback of this rank ends the training
};

/// Values that are known when a step begins.
struct StepBegin {
  float lr_factor = 1;
  RowTotals global_rows{};  // none: not known yet
  RankReport report{};
  Index first_row = 0;  // number of this rank's first row among those of all ranks, if it is known
};

/// Returns the numbers of a step when it begins. `steps`: started so far, this one included. `of_sample`: rows of the loss in a sample.
[[nodiscard]] StepNumbers first_numbers(std::int64_t steps, const StepBegin& step, Index of_sample);

/// The results of a step or an evaluation.
struct Totals {
  double loss = 0;           // sum over rows
  double correct = 0;        // rows
  double rows = 0;           // that count
  double gradient_norm = 0;  // before clipping; 0 if not computed
  bool skipped = false;      // the gradient was not finite, and was not applied
  double loss_scale = 1;     // factor of the step's gradients (see LossScaling)
  int stops = 0;             // ranks that ask to stop the training after this step
  int saves = 0;             // ranks that were busy with a checkpoint when this step began
  int ends = 0;              // ranks whose callback ends the training after this step
  double seconds = 0;        // time of the step on this rank, from start() to the end of finish(); 0 if steps overlap
  double ignored = 0;        // rows that do not count
  double weight = 0;         // sum of the weights of rows; 0 if the loss does not weigh rows (see loss::WeighsRows)

  /// Returns the mean over the rows that count, or by weights; 0 if the loss ignores all rows, and NaN if there are none.
  [[nodiscard]] double mean_loss() const {
    if (rows > 0) return loss / (weight > 0 ? weight : rows);
    return ignored > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns NaN if no row counts.
  [[nodiscard]] double accuracy() const { return rows > 0 ? correct / rows : std::numeric_limits<double>::quiet_NaN(); }
};

/// The totals of a step, on their way to the host.
template <class D>
struct PendingTotals {
  DeviceRead<D, StepNumbers> numbers;
  RowTotals rows;
  std::int64_t steps;  // steps started so far, this one included
};

/// Returns the totals of a step from its numbers. `rows`: those of all ranks.
[[nodiscard]] Totals totals_of(const StepNumbers& numbers, const RowTotals& rows, double seconds = 0);

/// The largest share and the seed that an engine is made for.
struct Limits {
  Index rows = 0;  // of the largest share of a step
  std::uint64_t seed = 0;
};

/// Throws ShapeError unless a batch has at most `limit` rows, and `width` values in each.
void check_batch(Index rows, Index cols, Index limit, Index width);
/// Throws ConfigError if a layer that pauses has a single value in a batch of `rows` rows: a sum over the batch is then no statistic.
void check_sums(const nn::Outline& model, Index rows);
/// Throws ShapeError unless a batch has `width` target elements for each row.
void check_targets(Index rows, Index elements, Index width);

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/batch.hpp>
#endif
