#pragma once

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// Returns the number of the unit that holds a layer; -1: none.
[[nodiscard]] constexpr int unit_of(const Plan& plan, int layer) {
  for (int unit = 0; unit < as_int(plan.units.size()); ++unit)
    if (plan.units[as_size(unit)].first <= layer && layer < plan.units[as_size(unit)].last) return unit;
  return -1;
}

/// Returns the group whose ranks add up numbers in a pause of a layer; -1 if no other rank has any.
[[nodiscard]] constexpr int group_of_pause(const Outline& model, const Plan& plan, int layer, Index pause, bool backward, bool training) {
  switch (model.sum_of_pause(layer, pause, backward).over) {
    case nn::SummedOver::parts:
      return plan.tensor_group;
    case nn::SummedOver::batch:
      if (const int unit = unit_of(plan, layer); model.sums_over_batch(layer, training) && plan.share.count > 1 && unit >= 0)
        return plan.units[as_size(unit)].group;
      break;
    case nn::SummedOver::nothing:
      break;
  }
  return -1;
}

namespace detail {

/// Rewrites a list of a plan: before a layer that pauses (see nn/pauses.hpp), adds the parts of its forward and backward, and what the
/// ranks add up in between.
class PauseWriter {
 public:
  constexpr PauseWriter(const Outline& model, const Plan& plan, bool training) : model_{model}, plan_{plan}, training_{training} {}

  [[nodiscard]] constexpr Instructions write(const Instructions& from) {
    for (const Instruction& i : from) {
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
  constexpr void forward(const Instruction& i) {
    int first = i.first;
    for (int layer = i.first; layer < i.last; ++layer) {
      if (!model_.pauses(layer, training_)) continue;
      if (first < layer) list_.push_back(compute(Op::forward, i.micro_batch, first, layer));
      pause(Op::forward_to_pause, Tensor::activation, i.micro_batch, layer);
      first = layer;
    }
    list_.push_back(compute(Op::forward, i.micro_batch, first, i.last));
  }
  constexpr void backward(const Instruction& i) {
    int last = i.last;
    for (int layer = i.last - 1; layer >= i.first; --layer) {
      if (!model_.pauses_in_backward(layer)) continue;
      if (layer + 1 < last) list_.push_back(compute(Op::backward_input, i.micro_batch, layer + 1, last));
      pause(Op::backward_to_pause, Tensor::gradient, i.micro_batch, layer);
      last = layer + 1;
    }
    list_.push_back(compute(Op::backward_input, i.micro_batch, i.first, last));
  }
  constexpr void pause(Op part, Tensor tensor, int micro_batch, int layer) {
    if (model_.sums_over_batch(layer, training_) && plan_.share.count > 1 && unit_of(plan_, layer) < 0)
      throw PlanError{text("layer ", layer,
                           " of the model (counted from 0) adds up over the batch, but no unit of the plan holds it, so the "
                           "ranks that have other rows are not known; put it into a unit")};
    for (int number = 0; number < as_int(model_.layers[as_size(layer)].pauses); ++number) {
      list_.push_back(to_pause(part, micro_batch, layer, number));
      const int group = group_of_pause(model_, plan_, layer, number, tensor == Tensor::gradient, training_);
      if (group >= 0) list_.push_back(sum_in_pause(tensor, micro_batch, layer, number, group));
    }
  }

  const Outline& model_;
  const Plan& plan_;
  bool training_;
  Instructions list_;
};

}  // namespace detail

/// Returns a plan in which layers that pause do so: BatchNorm for its sums over the batch, and blocks inside a layer for the exchanges of
/// divided layers. Accepts the plan of any strategy that runs backward_input of all layers; a plan that has the pauses already is not
/// changed. Throws PlanError if a layer adds up over the batch, but the plan cuts the batch into micro-batches, unless the layer allows
/// that.
[[nodiscard]] constexpr Plan with_pauses(const Outline& model, const Plan& plan) {
  Plan with_sums = plan;
  const bool has_pauses =
      std::any_of(plan.step.begin(), plan.step.end(), [](const Instruction& i) { return i.op == Op::forward_to_pause; });
  if (model.forward_sums.empty() || has_pauses) return with_sums;
  for (int layer = 0; layer < model.size(); ++layer) {
    const Outline::Layer& own = model.layers[as_size(layer)];
    if (plan.micro_batches > 1 && !own.pauses_in_micro_batches && !own.is_frozen) {
      throw PlanError{text("layer ", layer,
                           " of the model (counted from 0) normalises with the mean and variance of the whole batch, as BatchNorm "
                           "does, but the strategy computes ",
                           plan.micro_batches,
                           " micro-batches one after another; choose a strategy with one micro-batch, GroupNorm in place of BatchNorm, or "
                           "BatchNorm{.per_micro_batch = true}, which takes the statistics of a micro-batch")};
    }
  }
  with_sums.step = detail::PauseWriter{model, plan, true}.write(plan.step);
  with_sums.evaluate = detail::PauseWriter{model, plan, false}.write(plan.evaluate);
  return with_sums;
}

}  // namespace pdp::plan
