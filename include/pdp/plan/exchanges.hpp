#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

namespace detail {

/// Rewrites a list of instructions and adds the exchanges of divided layers (nn::Exchange) over a group.
///
/// Waits for the sum of an activation at once. Starts the sum of a gradient as soon as its terms are computed, and waits for it before the
/// first instruction that needs it. So the sum overlaps with the gradients of parameters.
class ExchangeWriter {
 public:
  constexpr ExchangeWriter(const Outline& model, int group, const Instructions& from) : model_{model}, group_{group}, from_{from} {}

  [[nodiscard]] constexpr Instructions write() {
    for (at_ = 0; at_ < from_.size(); ++at_) {
      const Instruction& i = from_[at_];
      if (i.op == Op::forward)
        forward(i);
      else if (i.op == Op::backward_input)
        backward(i);
      else {
        if (i.op == Op::loss && model_.output_is_sharded) put(sum(Op::share_loss, Tensor::activation, i.micro_batch, i.first, group_));
        put(i);
      }
    }
    while (!pending_.empty()) wait(0);
    return std::move(list_);
  }

 private:
  [[nodiscard]] constexpr nn::Exchange exchange(int layer) const { return model_.layers[as_size(layer)].exchange; }
  /// Returns whether a layer sums the gradient of its input over the group. Such a layer does nothing else and has no parameters.
  [[nodiscard]] constexpr bool sums_gradient(int layer) const {
    return exchange(layer) == nn::Exchange::gradient_of_input && model_.passes_gradient(layer);
  }

  constexpr void put(const Instruction& instruction) {
    for (std::size_t each = pending_.size(); each-- > 0;)
      if (needs(instruction, pending_[each])) wait(each);
    list_.push_back(instruction);
  }
  constexpr void wait(std::size_t which) {
    const Instruction end = wait_of(pending_[which]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
    list_.push_back(end);
  }
  /// Returns whether an instruction reads the gradient whose sum `started` has started.
  static constexpr bool needs(const Instruction& i, const Instruction& started) {
    return i.micro_batch == started.micro_batch && reads_gradient(i, started.first);
  }

  constexpr void forward(const Instruction& i) {
    int first = i.first;
    for (int layer = i.first; layer < i.last; ++layer) {
      if (exchange(layer) != nn::Exchange::output) continue;
      put(compute(Op::forward, i.micro_batch, first, layer + 1));
      put(sum(Op::sum_start, Tensor::activation, i.micro_batch, layer + 1, group_));
      put(sum(Op::sum_wait, Tensor::activation, i.micro_batch, layer + 1, group_));
      first = layer + 1;
    }
    if (first < i.last) put(compute(Op::forward, i.micro_batch, first, i.last));
  }

  constexpr void backward(const Instruction& i) {
    int last = i.last;
    for (int layer = i.last - 1; layer >= i.first; --layer) {
      if (!sums_gradient(layer)) continue;
      if (layer + 1 < last) put(compute(Op::backward_input, i.micro_batch, layer + 1, last));
      start_sum(i.micro_batch, layer);
      last = layer;
    }
    if (i.first < last) put(compute(Op::backward_input, i.micro_batch, i.first, last));
    if (const int before = i.first - 1; before >= 0 && sums_gradient(before) && comes(i.micro_batch, before))
      start_sum(i.micro_batch, before);
  }
  constexpr void start_sum(int micro_batch, int layer) {
    if (std::find(started_.begin(), started_.end(), std::pair{micro_batch, layer}) != started_.end()) return;
    started_.emplace_back(micro_batch, layer);
    put(compute(Op::backward_input, micro_batch, layer, layer + 1));
    pending_.push_back(sum(Op::sum_start, Tensor::gradient, micro_batch, layer, group_));
    list_.push_back(pending_.back());
  }
  /// Returns whether this rank runs backward_input of a layer later in the list.
  [[nodiscard]] constexpr bool comes(int micro_batch, int layer) const {
    return std::any_of(from_.begin() + static_cast<std::ptrdiff_t>(at_), from_.end(), [&](const Instruction& i) {
      return i.op == Op::backward_input && i.micro_batch == micro_batch && i.first <= layer && layer < i.last;
    });
  }

  const Outline& model_;
  int group_;
  const Instructions& from_;
  std::size_t at_ = 0;
  Instructions list_;
  std::vector<Instruction> pending_;
  std::vector<std::pair<int, int>> started_;  // micro-batch and layer
};

}  // namespace detail

/// Returns a plan in which the rank computes its part of each divided layer and exchanges tensors with the group. Accepts the plan of any
/// strategy. `model`: the outline of the divided model. `group`: number of the tensor-parallel group in the plan.
constexpr Plan with_exchanges(const Outline& model, Plan plan, nn::Part part, int group) {
  plan.tensor = part;
  plan.tensor_group = group;
  for (Instructions* list : {&plan.step, &plan.evaluate}) *list = detail::ExchangeWriter{model, group, *list}.write();
  return plan;
}

}  // namespace pdp::plan
