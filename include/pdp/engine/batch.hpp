#pragma once

#include <cstdint>
#include <span>

#include <pdp/core/matrix.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::engine {

/// What a rank brings to a step: its share of a batch, of any number of rows up to what the engine was made for, none included.
template <class Input, class Target>
struct Batch {
  Matrix<const Input> x;
  std::span<const Target> targets;
  Index global_rows = 0;   // over all ranks, and every rank's share follows from it; 0: not known, the ranks count it together
  bool on_device = false;  // whether it lies in the device's memory, and not in the host's
};

/// What is known of a step when it begins.
struct StepBegin {
  float lr_factor = 1;
  Index global_rows = 0;  // 0: not known yet
};

/// What a step or an evaluation reports.
struct Totals {
  double loss = 0;     // sum over rows
  double correct = 0;  // rows
  double rows = 0;
  double gradient_norm = 0;  // before it was clipped; 0 where nobody has asked for it
  bool skipped = false;      // the gradient was not finite, and has not been applied
  double loss_scale = 1;     // that its gradients were larger by (see LossScaling)

  [[nodiscard]] double mean_loss() const { return rows > 0 ? loss / rows : 0; }
  [[nodiscard]] double accuracy() const { return rows > 0 ? correct / rows : 0; }
};

/// Sizes that an engine is made for.
struct Limits {
  Index rows = 0;  // the largest share of a step
  std::uint64_t seed = 0;
};

/// Throws ShapeError unless a batch has at most `limit` rows, and `width` values in each.
void check_batch(Index rows, Index cols, Index limit, Index width);
/// Throws ShapeError unless a batch has `width` target elements for each row.
void check_targets(Index rows, Index elements, Index width);

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/batch.hpp>
#endif
