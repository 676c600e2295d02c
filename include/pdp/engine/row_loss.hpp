#pragma once

#include <span>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/check_output.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/loss/output_rows.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::engine {

/// The loss of a rank's rows. If each rank of a group has some columns of the output, the ranks first exchange partial results, which each
/// computes from its own columns. Borrows the outline.
template <class Loss, class T, class D>
class RowLoss {
  using Gradient = Accumulated<T>;
  using Target = loss::TargetOf<Loss, D, T>;
  static constexpr bool takes_shards = loss::ShardedLoss<Loss, D, T>;
  // Of a type, which is known when a trainer is made, so that a wrong weight() is reported then.
  using WeighsRows = std::bool_constant<loss::weighs_rows<Loss>()>;

 public:
  static constexpr bool numbers_rows = uses_row_numbers<Loss> || uses_row_numbers<loss::OnDevice<Loss, D>>;

  RowLoss(const D& device, const Loss& loss, nn::Part part, const nn::Outline& model, Index micro_rows)
      : loss_{loss},
        there_{loss::on_device(loss, device)},
        part_{part},
        model_{model},
        rows_{loss::output_rows<Loss>(model.output)},
        uncounted_{allocate<LossSums>(device, 1)} {
    check_output<Loss, D, T>(model);
    if constexpr (requires { loss.check_outputs(Index{}); }) loss.check_outputs(rows_.outputs);
    if constexpr (takes_shards) {
      if (model.output_is_sharded) {
        part_limit_ = micro_rows * rows_.count * Loss::part_numbers;
        parts_ = allocate<Gradient>(device, part_limit_ * (1 + part.count));
      }
    }
  }

  /// Returns the number of target elements of a sample.
  [[nodiscard]] Index target_elements() const { return rows_.target_elements(loss_); }
  /// Returns the number of rows of the loss in the output of a sample.
  [[nodiscard]] Index rows_of_sample() const { return rows_.count; }
  /// Throws LabelError if a target is none of the model's outputs. Does nothing on a CPU: there the loss itself throws.
  void check(std::span<const Target> targets) const {
    if constexpr (!D::uses_host_memory && requires { loss_.check(targets, Index{}); }) loss_.check(targets, rows_.outputs);
  }

  [[nodiscard]] bool may_ignore_rows() const { return loss::may_ignore_rows(loss_); }
  /// Returns the rows of the loss in a batch. Waits for targets in device memory.
  template <class Sample>
  [[nodiscard]] RowTotals rows_of(const D& device, const Batch<Sample, Target>& batch) const {
    const Index rows = batch.x.rows * rows_.count;
    if (!WeighsRows::value && !may_ignore_rows()) return {rows};
    const auto count = [&](std::span<const Target> targets) {
      const Index counted = loss::counted_rows(loss_, targets, rows);
      return RowTotals{counted, rows - counted, loss::weight_of_rows(loss_, targets, rows)};
    };
    if (!D::uses_host_memory && batch.on_device) return count(on_host(device, batch.targets));
    return count(batch.targets);
  }
  /// Returns the rows of a batch on this rank. `adds`: whether this rank adds them to those of all ranks.
  template <class Sample>
  [[nodiscard]] OwnRows own_rows(const D& device, const Batch<Sample, Target>& batch, bool adds) const {
    return {batch.x.rows, adds ? rows_of(device, batch) : RowTotals{}, may_ignore_rows(), rows_.count, WeighsRows::value};
  }
  /// own_parts(): the partial results of this rank for the last shared rows. all_parts(): memory for the partial results of all ranks of
  /// the group.
  [[nodiscard]] std::span<Gradient> own_parts() { return parts_.span().first(as_size(part_elements_)); }
  [[nodiscard]] std::span<Gradient> all_parts() {
    return parts_.span().subspan(as_size(part_limit_), as_size(part_elements_ * part_.count));
  }
  /// share() computes this rank's partial results for some rows. share_nothing() clears them, for a micro-batch without rows.
  void share_nothing() { part_elements_ = 0; }
  void share(const D& device, Matrix<const T> output_of_samples, std::span<const Target> targets) {
    if constexpr (takes_shards) {
      const Matrix<const T> output = rows_.of(output_of_samples);
      part_elements_ = output.rows * Loss::part_numbers;
      by_positions([&] {
        there_.part(device, output, targets, part_.index * output.cols, part_.count * output.cols,
                    Matrix<Gradient>{own_parts().data(), output.rows, Loss::part_numbers});
      });
    }
  }

  /// Computes the loss. `gradient`: empty if it is not needed. `pass`: that of the rows.
  void take(const D& device, Matrix<const T> output_of_samples, std::span<const Target> targets, StepNumbers* numbers,
            Matrix<T> gradient_of_samples, const Pass& pass) {
    const Matrix<const T> output = rows_.of(output_of_samples);
    const Matrix<T> gradient = rows_.of(gradient_of_samples);
    const bool counts = part_.index == 0;  // all ranks of the group compute the same loss
    const double* const scale = &numbers->scale;
    LossSums* const sums = counts ? &numbers->sums : uncounted_.data();
    if constexpr (takes_shards) {
      if (model_.output_is_sharded) {
        const Matrix<const Gradient> parts{all_parts().data(), output.rows * part_.count, Loss::part_numbers};
        return there_.join(device, output, targets, part_.index * output.cols, part_.count * output.cols, parts, scale, gradient, sums);
      }
    }
    by_positions([&] { loss::detail::call(there_, device, output, targets, scale, gradient, sums, pass); });
  }

 private:
  /// Calls the function. If a label is wrong, names its sample and its position.
  template <class Function>
  void by_positions(const Function& function) const {
    try {
      function();
    } catch (const LabelError& error) {
      if (rows_.count == 1) throw;
      throw error.of(text("position ", error.row() % rows_.count, " of row ", error.row() / rows_.count, " of a batch"));
    }
  }

  Loss loss_;
  loss::OnDevice<Loss, D> there_;
  nn::Part part_;  // of divided layers
  const nn::Outline& model_;
  loss::OutputRows rows_;
  DeviceMemory<D, LossSums> uncounted_;
  DeviceMemory<D, Gradient> parts_;           // this rank's, then those of all ranks
  Index part_elements_ = 0, part_limit_ = 0;  // elements of this rank's part: for the last shared rows; the maximum
};

}  // namespace pdp::engine
