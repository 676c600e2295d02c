#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/grouped.hpp>

namespace pdp::engine {

/// Parameters of a slice that lie side by side and have equal settings, so that one pass updates them. Memory between parameters belongs to
/// the run before it.
struct UpdateRun {
  optim::ParameterSettings settings{};
  bool is_buffer = false;
  Index begin = 0, elements = 0;  // in the slice
};

/// Returns the runs of each unit, in the order of memory. `parts`: of this rank's slices. `sizes`: the elements of its slice of each unit.
/// Without groups, and if no layer is frozen and there are no buffers, each slice is one run.
[[nodiscard]] std::vector<std::vector<UpdateRun>> update_runs(std::span<const optim::ParameterGroup> groups,
                                                              const std::vector<nn::SlicePart>& parts, std::span<const Index> sizes);

/// The state that an optimizer keeps for this rank's slices, zero at first. The state of a run is contiguous: field after field, each as
/// long as the run. Frozen runs and buffers have state, too, which is never read: checkpoints have the same tensors whatever is frozen.
template <class D, class T>
class OptimizerState {
 public:
  using Gradient = Accumulated<T>;

  /// `fields`: the values of the state for each parameter.
  OptimizerState(nn::StageParameters<D, T>& stage, std::span<const optim::ParameterGroup> groups, std::size_t units, std::size_t fields);
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;
  ~OptimizerState();

  [[nodiscard]] std::size_t fields() const { return fields_; }
  [[nodiscard]] const std::vector<UpdateRun>& runs(int unit) const { return runs_[as_size(unit)]; }
  [[nodiscard]] std::span<Gradient> of(int unit, const UpdateRun& run) {
    return state_[as_size(unit)].span().subspan(fields_ * as_size(run.begin), fields_ * as_size(run.elements));
  }
  /// Returns `count` values of field `field`, from element `at` of a slice on. They must be those of one parameter.
  [[nodiscard]] std::span<Gradient> values(int unit, std::size_t field, Index at, Index count);

 private:
  std::size_t fields_;
  std::vector<std::vector<UpdateRun>> runs_;      // [unit]
  std::vector<DeviceMemory<D, Gradient>> state_;  // [unit]
};

template <class D, class T>
OptimizerState<D, T>::OptimizerState(nn::StageParameters<D, T>& stage, std::span<const optim::ParameterGroup> groups, std::size_t units,
                                     std::size_t fields)
    : fields_{fields} {
  std::vector<Index> sizes(units);
  for (std::size_t u = 0; u < units; ++u) {
    sizes[u] = as_index(stage.own_gradients(as_int(u)).size());
    state_.push_back(allocate<Gradient>(stage.device(), as_index(fields) * sizes[u]));
  }
  runs_ = update_runs(groups, stage.slice_parts(), sizes);
}

template <class D, class T>
OptimizerState<D, T>::~OptimizerState() = default;

template <class D, class T>
auto OptimizerState<D, T>::values(int unit, std::size_t field, Index at, Index count) -> std::span<Gradient> {
  const UpdateRun& run = *std::prev(std::ranges::upper_bound(runs(unit), at, {}, &UpdateRun::begin));
  return of(unit, run).subspan(field * as_size(run.elements) + as_size(at - run.begin), as_size(count));
}

/// Memory for pointers into slices, moved to the beginning of a run.
template <class Pointer>
class SlicePointers {
 public:
  /// Returns `pointers`, moved by `begin` elements. They are valid until the next call.
  [[nodiscard]] std::span<const Pointer> moved(std::span<const Pointer> pointers, Index begin);

 private:
  std::vector<Pointer> memory_;  // those that differ
};

template <class Pointer>
std::span<const Pointer> SlicePointers<Pointer>::moved(std::span<const Pointer> pointers, Index begin) {
  if (begin == 0) return pointers;
  memory_.assign(pointers.begin(), pointers.end());
  for (Pointer& each : memory_) each += begin;
  return memory_;
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/optimizer_state.hpp>
#endif
