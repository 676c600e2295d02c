#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/optimizer.hpp>

namespace pdp::engine {

/// The optimizer of a rank, and its state for this rank's slice of each unit.
///
/// A slice is cut into *runs*: ranges of parameters with equal settings. A run is updated in one pass, with a rule of its own. If the
/// optimizer has no parameter groups, each slice is one run. Memory between parameters belongs to the run before it. The state of a run is
/// contiguous: field after field, each as long as the run. Frozen runs and buffers have state, too, which is never read: checkpoints have
/// the same tensors whatever is frozen.
template <optim::Optimizer Optimizer, class Stage>
class UnitUpdates {
  using Rule = optim::RuleOf<Optimizer>;
  using T = typename Stage::Element;
  using Gradient = typename Stage::Gradient;
  using D = typename Stage::Device;

 public:
  /// Throws ConfigError if the optimizer's groups do not fit the model (see check_groups).
  UnitUpdates(const Optimizer& optimizer, Stage& stage, std::size_t units);

  [[nodiscard]] const Optimizer& optimizer() const { return optimizer_; }
  /// Returns a function that says whether a parameter has no gradient that counts: it is frozen, or a buffer.
  [[nodiscard]] std::function<bool(const nn::Parameter&)> frozen() const {
    return [groups = groups_of(optimizer_)](const nn::Parameter& parameter) {
      return parameter.is_buffer || settings_of(groups, parameter).is_frozen;
    };
  }

  /// Updates this rank's slice of a unit. `parameters` is the slice. The gradients and copies are as long, as for update() of a device.
  void apply(const D& device, int unit, const StepNumbers* numbers, std::span<Gradient> parameters,
             std::span<const Gradient* const> gradients, std::span<T* const> copies) {
    for (const Run& run : runs_[as_size(unit)]) {
      if (run.is_frozen) continue;
      const std::span<Gradient> own = parameters.subspan(as_size(run.begin), as_size(run.elements));
      const auto from = moved(gradients_, gradients, run.begin);
      const auto to = moved(copies_, copies, run.begin);
      if (run.is_buffer)
        update<0>(device, optim::AddChange{}, numbers, own, from, std::span<Gradient>{}, to);
      else
        update<optim::state_fields<Optimizer>>(device, run.rule, numbers, own, from, state_of(unit, run), to);
    }
  }

  /// Writes the averages of this rank's slice of a unit over `parameters`, except for frozen ones and buffers.
  void put_averages(const D& device, int unit, std::span<Gradient> parameters) requires(optim::has_averages<Optimizer>) {
    for (const Run& run : runs_[as_size(unit)]) {
      if (run.is_frozen || run.is_buffer) continue;
      const std::span<const Gradient> averages = state_of(unit, run).last(as_size(run.elements));
      copy(device, averages, parameters.data() + run.begin);
    }
  }

  /// Returns `count` values of field `field` of the state, from element `at` of a slice on. They must be those of one parameter.
  [[nodiscard]] std::span<Gradient> values(int unit, std::size_t field, Index at, Index count) {
    const auto& runs = runs_[as_size(unit)];
    const Run& run = *std::prev(std::ranges::upper_bound(runs, at, {}, &Run::begin));
    return state_of(unit, run).subspan(field * as_size(run.elements) + as_size(at - run.begin), as_size(count));
  }

 private:
  struct Run {
    Rule rule;
    bool is_frozen = false, is_buffer = false;
    Index begin = 0, elements = 0;  // in the slice
  };

  [[nodiscard]] std::span<Gradient> state_of(int unit, const Run& run) {
    return state_[as_size(unit)].span().subspan(fields_ * as_size(run.begin), fields_ * as_size(run.elements));
  }
  /// Returns the pointers, moved by `begin` elements. `memory` holds those that differ.
  template <class Pointer>
  [[nodiscard]] static std::span<const Pointer> moved(std::vector<Pointer>& memory, std::span<const Pointer> pointers, Index begin) {
    if (begin == 0) return pointers;
    memory.assign(pointers.begin(), pointers.end());
    for (Pointer& each : memory) each += begin;
    return memory;
  }

  Optimizer optimizer_;
  std::size_t fields_;                            // values of the state for each parameter
  std::vector<std::vector<Run>> runs_;            // [unit]: in the order of memory
  std::vector<DeviceMemory<D, Gradient>> state_;  // [unit]
  std::vector<const Gradient*> gradients_;
  std::vector<T*> copies_;
};

template <optim::Optimizer Optimizer, class Stage>
UnitUpdates<Optimizer, Stage>::UnitUpdates(const Optimizer& optimizer, Stage& stage, std::size_t units)
    : optimizer_{optimizer}, fields_{optim::needed_state_fields(optimizer)}, runs_(units) {
  const auto groups = groups_of(optimizer_);
  check_groups(groups, stage.of_model());
  struct Part {
    Index at;
    optim::ParameterSettings settings;
    bool is_buffer = false;
    bool operator==(const Part& other) const { return settings == other.settings && is_buffer == other.is_buffer; }  // at any place
  };
  std::vector<std::vector<Part>> parts(units);
  stage.for_each_slice_part([&](const nn::Parameter& parameter, const typename Stage::SlicePart& part) {
    parts[as_size(part.unit)].push_back({part.at, settings_of(groups, parameter), parameter.is_buffer});
  });
  for (std::size_t u = 0; u < units; ++u) {
    const Index slice = as_index(stage.own_gradients(as_int(u)).size());
    std::ranges::sort(parts[u], {}, &Part::at);
    if (parts[u].empty()) parts[u].push_back({});
    parts[u].front().at = 0;
    const auto [repeated, end] = std::ranges::unique(parts[u]);
    parts[u].erase(repeated, end);
    for (std::size_t i = 0; i < parts[u].size(); ++i) {
      const auto& [at, settings, is_buffer] = parts[u][i];
      const Index behind = i + 1 < parts[u].size() ? parts[u][i + 1].at : slice;
      runs_[u].push_back({rule_with(optimizer_, settings), settings.is_frozen, is_buffer, at, behind - at});
    }
    state_.push_back(allocate<Gradient>(stage.device(), as_index(fields_) * slice));
  }
}

}  // namespace pdp::engine
