#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/optimizer_state.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/optimizer.hpp>

namespace pdp::engine {

/// The optimizer of a rank, and its state for this rank's slice of each unit. Each run of a slice is updated in one pass, with a rule of
/// its own.
template <optim::Optimizer Optimizer, class D, class T>
class UnitUpdates {
 public:
  using Gradient = Accumulated<T>;

  /// Throws ConfigError if the optimizer's groups do not fit the model (see check_groups).
  UnitUpdates(const Optimizer& optimizer, nn::StageParameters<D, T>& stage, std::size_t units)
      : optimizer_{optimizer},
        state_{stage, checked_groups(groups_of(optimizer_), stage.of_model()), units, optim::needed_state_fields(optimizer)} {}
  UnitUpdates(const UnitUpdates&) = delete;
  UnitUpdates& operator=(const UnitUpdates&) = delete;

  [[nodiscard]] const Optimizer& optimizer() const { return optimizer_; }
  [[nodiscard]] OptimizerState<D, T>& state() { return state_; }

  /// Updates this rank's slice of a unit. `parameters` is the slice. The gradients and copies are as long, as for update() of a device.
  void apply(const D& device, int unit, const StepNumbers* numbers, std::span<Gradient> parameters,
             std::span<const Gradient* const> gradients, std::span<T* const> copies) {
    for (const UpdateRun& run : state_.runs(unit)) {
      if (run.settings.is_frozen) continue;
      const std::span<Gradient> own = parameters.subspan(as_size(run.begin), as_size(run.elements));
      const auto from = gradients_.moved(gradients, run.begin);
      const auto to = copies_.moved(copies, run.begin);
      if (run.is_buffer)
        update<0>(device, optim::AddChange{}, numbers, own, from, std::span<Gradient>{}, to);
      else
        update<optim::state_fields<Optimizer>>(device, rule_with(optimizer_, run.settings), numbers, own, from, state_.of(unit, run), to);
    }
  }

  /// Writes the averages of this rank's slice of a unit over `parameters`, except for frozen ones and buffers.
  void put_averages(const D& device, int unit, std::span<Gradient> parameters) requires(optim::has_averages<Optimizer>) {
    for (const UpdateRun& run : state_.runs(unit)) {
      if (run.settings.is_frozen || run.is_buffer) continue;
      const std::span<const Gradient> averages = state_.of(unit, run).last(as_size(run.elements));
      copy(device, averages, parameters.data() + run.begin);
    }
  }

 private:
  Optimizer optimizer_;
  OptimizerState<D, T> state_;
  SlicePointers<const Gradient*> gradients_;
  SlicePointers<T*> copies_;
};

}  // namespace pdp::engine
