#pragma once

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

namespace detail {

/// Rewrites the step of a plan: before a layer that pauses (see nn/pauses.hpp), adds the parts of its forward and backward, and the sums
/// over the ranks of its unit's group.
class BatchSumWriter {
 public:
  constexpr BatchSumWriter(const Outline& model, const Plan& plan) : model_{model}, plan_{plan} {}

  [[nodiscard]] constexpr Instructions write() {
    for (const Instruction& i : plan_.step) {
      if (i.op == Op::forward)
        forward(i);
      else if (i.op == Op::backward_input)
        backward(i);
      else
        list_.push_back(i);
    }
    return std::move(list_);
  }

 private:
  [[nodiscard]] constexpr int pauses(int layer) const { return as_int(model_.layers[as_size(layer)].pauses); }

  constexpr void forward(const Instruction& i) {
    int first = i.first;
    for (int layer = i.first; layer < i.last; ++layer) {
      if (pauses(layer) == 0) continue;
      if (first < layer) list_.push_back(compute(Op::forward, i.micro_batch, first, layer));
      pause(Op::forward_to_sums, Tensor::activation, i.micro_batch, layer);
      first = layer;
    }
    list_.push_back(compute(Op::forward, i.micro_batch, first, i.last));
  }
  constexpr void backward(const Instruction& i) {
    int last = i.last;
    for (int layer = i.last - 1; layer >= i.first; --layer) {
      if (pauses(layer) == 0) continue;
      if (layer + 1 < last) list_.push_back(compute(Op::backward_input, i.micro_batch, layer + 1, last));
      pause(Op::backward_to_sums, Tensor::gradient, i.micro_batch, layer);
      last = layer + 1;
    }
    list_.push_back(compute(Op::backward_input, i.micro_batch, i.first, last));
  }
  constexpr void pause(Op part, Tensor tensor, int micro_batch, int layer) {
    const int group = group_of(layer);
    for (int number = 0; number < pauses(layer); ++number) {
      list_.push_back(to_sums(part, micro_batch, layer, number));
      if (group >= 0) list_.push_back(sum_over_batch(tensor, micro_batch, layer, number, group));
    }
  }
  /// Returns the group whose ranks have the layer, each with other rows; -1 if this rank has all rows.
  [[nodiscard]] constexpr int group_of(int layer) const {
    for (const Unit& unit : plan_.units)
      if (unit.first <= layer && layer < unit.last) return plan_.share.count > 1 ? unit.group : -1;
    if (plan_.share.count > 1)
      throw PlanError{text("layer ", layer,
                           " of the model (counted from 0) adds up over the batch, but no unit of the plan holds it, so the "
                           "ranks that have other rows are not known; put it into a unit")};
    return -1;
  }

  const Outline& model_;
  const Plan& plan_;
  Instructions list_;
};

}  // namespace detail

/// Returns a plan in which layers that pause get their sums over the batch, such as BatchNorm. Accepts the plan of any strategy that runs
/// backward_input of all layers; a plan that has the sums already is not changed. Throws PlanError if the plan cuts the batch into
/// micro-batches, unless all these layers allow that.
[[nodiscard]] constexpr Plan with_batch_sums(const Outline& model, const Plan& plan) {
  Plan with_sums = plan;
  const bool has_sums = std::any_of(plan.step.begin(), plan.step.end(), [](const Instruction& i) { return i.op == Op::forward_to_sums; });
  if (model.batch_sums() == 0 || has_sums) return with_sums;
  for (int layer = 0; layer < model.size(); ++layer) {
    if (plan.micro_batches > 1 && !model.layers[as_size(layer)].pauses_in_micro_batches) {
      throw PlanError{text("layer ", layer,
                           " of the model (counted from 0) normalises with the mean and variance of the whole batch, as BatchNorm "
                           "does, but the strategy computes ",
                           plan.micro_batches,
                           " micro-batches one after another; choose a strategy with one micro-batch, GroupNorm in place of BatchNorm, or "
                           "BatchNorm{.per_micro_batch = true}, which takes the statistics of a micro-batch")};
    }
  }
  with_sums.step = detail::BatchSumWriter{model, plan}.write();
  return with_sums;
}

}  // namespace pdp::plan
