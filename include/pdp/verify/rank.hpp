#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/cuts.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/verify/clock.hpp>
#include <pdp/verify/group_table.hpp>
#include <pdp/verify/messages.hpp>
#include <pdp/verify/units.hpp>
#include <pdp/verify/values.hpp>

namespace pdp::plan::detail {

/// One rank of a rehearsal: all checks of an instruction that need no other rank. A function that checks an instruction returns why it is
/// not valid, or null.
class RehearsedRank {
 public:
  /// A collective that the rank has started.
  struct Call {
    Instruction start;
    double at = 0;  // the rank's time
  };

  constexpr RehearsedRank(const Outline& model, const Plan& plan, const GroupTable& groups, int rank, bool training)
      : values{model, plan.micro_batches},
        units{model, plan, groups, rank},
        messages{plan.micro_batches},
        calls(plan.groups.size() + 1),
        met(calls.size(), 0),
        model_{&model},
        plan_{&plan},
        training_{training},
        gradient_taken_(as_size(plan.micro_batches) * as_size(model.size() + 1), 0),
        held_from_(gradient_taken_),
        held_(as_size(plan.micro_batches), 0),
        loss_taken_(as_size(plan.micro_batches), 0),
        forward_progress_(gradient_taken_.size(), 0),
        backward_progress_(gradient_taken_.size(), 0) {}

  /// Checks the numbers that every instruction may use: its group and its unit.
  [[nodiscard]] constexpr const char* misnamed(const Instruction& i) const {
    if (i.group < 0 || i.group >= as_int(calls.size())) return "names a group that the plan does not have";
    if (is_of_unit(i.op) && (i.unit < 0 || i.unit >= units.size())) return "names a unit that the plan does not have";
    return nullptr;
  }
  [[nodiscard]] constexpr const char* misnamed_boundary(const Instruction& i) const {
    if (!has_micro_batch(i)) return "names a micro-batch that the plan does not have";
    return i.first < 0 || i.first > model_->size() ? "names a boundary that the model does not have" : nullptr;
  }

  constexpr const char* compute(const Instruction& i) {
    if (!has_micro_batch(i)) return "names a micro-batch that the plan does not have";
    if (i.first < 0 || i.last > model_->size() || (i.op == Op::loss ? i.first != model_->size() : i.first >= i.last))
      return "names layers that the model does not have";
    if (const char* reason = units.use_parameters(i); reason != nullptr) return reason;
    if (i.op == Op::forward) return forward(i);
    if (i.op == Op::loss) return loss(i);
    if (info(i.op).kind == OpKind::pause) return pause(i);
    return i.op == Op::backward_input ? backward_input(i) : backward_weight(i);
  }

  constexpr const char* start_message(const Instruction& i) {
    const bool sends = i.op == Op::send_start;
    if (sends && !values.is_whole(i.tensor, i.micro_batch, i.first)) return "sends a value that is not yet available";
    if (!sends && i.tensor == Tensor::activation && model_->is_input(i.first)) return "receives the batch, which the rank already has";
    if (messages.is_open(i)) return "starts a message again before it has been waited for";
    if (sends)
      values.start_send(i.tensor, i.micro_batch, i.first);
    else if (const char* reason = values.start_receive(i.tensor, i.micro_batch, i.first); reason != nullptr)
      return reason;
    messages.start(i, clock.now());
    return nullptr;
  }
  constexpr void end_message(const Instruction& i, const RehearsedMessage& theirs) {
    if (i.op == Op::send_wait) return values.end_send(i.tensor, i.micro_batch, i.first);
    values.end_receive(i.tensor, i.micro_batch, i.first);
    clock.wait_until(theirs.at);
  }

  constexpr const char* update(const Instruction& i, bool takes_norm) { return units.update(i, takes_norm && !is_known(Op::norm_start)); }

  /// Check this rank's side of a collective: start_call() when this rank starts it, end_call() when all ranks have reached it.
  constexpr const char* start_call(const Instruction& i) {
    if (info(i.op).kind == OpKind::step) return start_sum_of_step(i);
    if (i.op == Op::reduce_start) return units.start_reduction(i);
    if (i.op == Op::sum_tied) return units.sum_tied(i);
    if (i.op == Op::gather_start) return units.start_gathering(i);
    if (i.op == Op::broadcast) return units.broadcast(i);
    if (const char* reason = misnamed_boundary(i); reason != nullptr) return reason;
    if (i.op == Op::sum_in_pause) return start_pause_sum(i);
    if (model_->parts == 1 || i.group != plan_->tensor_group) return "uses a group that is not the tensor-parallel group";
    return i.op == Op::share_loss ? values.missing(Tensor::activation, i.micro_batch, i.first)
                                  : values.start_sum(i.tensor, i.micro_batch, i.first);
  }
  constexpr const char* end_call(const Instruction& i) {
    if (info(i.op).kind == OpKind::step) known_[as_size(start_of(i.op))] = true;
    if (i.op == Op::share_loss) shared_ = i.micro_batch;
    if (i.op == Op::sum_in_pause) ++progress(i, i.tensor == Tensor::gradient);
    if (i.op == Op::sum_wait) values.end_sum(i.tensor, i.micro_batch, i.first);
    if (i.op == Op::gather_wait) units.end_gathering(i);
    return i.op == Op::reduce_wait ? units.end_reduction(i) : nullptr;
  }

  /// Returns what the list leaves unfinished, or null.
  [[nodiscard]] constexpr const char* left_over() const {
    if (!messages.all_waited()) return "leaves a message that is never waited for";
    if (units.is_gathering()) return "leaves parameters that are gathered and never waited for";
    if (values.has_terms()) return "leaves partial values that are never summed, or a sum that is never waited for";
    for (const int progress : forward_progress_)
      if (progress > 0) return "leaves sums of a pause that no forward uses";
    if (!training_) return nullptr;
    if (const char* reason = units.left_over(); reason != nullptr) return reason;
    return started_ != known_ ? "leaves a count, a norm or totals that are never waited for" : nullptr;
  }
  /// Returns the largest number of micro-batches whose activations this rank has held at once so far.
  [[nodiscard]] constexpr int peak() const { return peak_; }

  int next = 0;  // index of the next instruction
  RehearsalClock clock;
  RehearsedValues values;
  RehearsedUnits units;
  RehearsedMessages messages;
  std::vector<std::vector<Call>> calls;  // [group]: in the order of their starts
  std::vector<int> met;                  // [group]: number of calls, from the first on, that match on all ranks
  int blocking = -1;                     // index of the blocking collective, such as a broadcast, that this rank executes; -1: none

 private:
  using State = RehearsedValues::State;

  [[nodiscard]] constexpr bool has_micro_batch(const Instruction& i) const {
    return i.micro_batch >= 0 && i.micro_batch < (training_ ? plan_->micro_batches : 1);
  }
  [[nodiscard]] constexpr std::size_t place(int micro_batch, int boundary) const {
    return as_size(micro_batch) * as_size(model_->size() + 1) + as_size(boundary);
  }
  [[nodiscard]] constexpr const nn::Outline::Layer& layer(int number) const { return model_->layers[as_size(number)]; }
  [[nodiscard]] constexpr bool is_known(Op start) const { return known_[as_size(start)]; }
  constexpr void take_time(int number) { clock.compute(as_double(cost(layer(number)))); }
  /// Records that layer `from` writes a value at a boundary.
  constexpr const char* give(Tensor tensor, int m, int boundary, int from, bool is_term) {
    return values.give(tensor, m, boundary, is_term ? State::term : State::whole, layer(from).is_view);
  }

  static constexpr int complete = -1;
  /// The progress of a layer that pauses, `complete` after its forward: 2 p + 1 when it has computed its sums for pause p, 2 p + 2 when
  /// they are added up over the ranks.
  constexpr int& progress(const Instruction& i, bool backward) { return progress(i.micro_batch, i.first, backward); }
  constexpr int& progress(int micro_batch, int layer, bool backward) {
    return (backward ? backward_progress_ : forward_progress_)[place(micro_batch, layer)];
  }
  /// Returns the group that adds up in a pause; -1: no group.
  [[nodiscard]] constexpr int pause_group(const Instruction& i, bool backward) const {
    return group_of_pause(*model_, *plan_, i.first, i.pause, backward, training_);
  }
  [[nodiscard]] constexpr bool pauses(int number, bool backward) const {
    return backward ? training_ && model_->pauses_in_backward(number) : model_->pauses(number, training_);
  }
  constexpr const char* pause(const Instruction& i) {
    const bool is_backward = i.op == Op::backward_to_pause;
    if (i.last != i.first + 1 || i.pause < 0 || i.pause >= layer(i.first).pauses) return "names a pause that the layer does not have";
    if (!pauses(i.first, is_backward))
      return training_ ? "pauses in a frozen layer, which adds up nothing" : "pauses in an evaluation, in which the layer adds up nothing";
    const Tensor tensor = is_backward ? Tensor::gradient : Tensor::activation;
    if (const char* reason = values.missing(tensor, i.micro_batch, is_backward ? i.last : i.first); reason != nullptr) return reason;
    int& at = progress(i, is_backward);
    if (!is_backward && at == complete) at = 0;  // a recomputation
    if (is_backward && progress(i, false) != complete) return "comes while forward of the layer is not complete";
    if (at != 2 * i.pause) return "comes before the sums of the pause before it are added up, or is computed twice";
    at += pause_group(i, is_backward) >= 0 ? 1 : 2;
    return nullptr;
  }
  constexpr const char* start_pause_sum(const Instruction& i) {
    if (i.first >= model_->size() || i.pause < 0 || i.pause >= layer(i.first).pauses) return "names a pause that the layer does not have";
    if (i.group != pause_group(i, i.tensor == Tensor::gradient))
      return "uses a group other than that of the layer's unit, or of the parts of divided layers";
    return progress(i, i.tensor == Tensor::gradient) == 2 * i.pause + 1 ? nullptr : "adds up sums that are not computed";
  }
  /// Returns why the last part of a layer that pauses cannot run, or null. `number`: the layer. `is_next`: nothing runs before it in the
  /// same instruction.
  constexpr const char* unpaused(int m, int number, bool backward, bool is_next) {
    if (!pauses(number, backward)) return nullptr;
    if (is_next && progress(m, number, backward) == 2 * layer(number).pauses) return nullptr;
    return "runs a layer before its sums are added up over the ranks";
  }

  constexpr const char* forward(const Instruction& i) {
    const int m = i.micro_batch;
    if (const char* reason = values.missing(Tensor::activation, m, i.first); reason != nullptr) return reason;
    for (int number = i.first; number < i.last; ++number) {
      if (const char* reason = unpaused(m, number, false, number == i.first); reason != nullptr) return reason;
      progress(m, number, false) = complete;
      const bool is_term = layer(number).exchange == nn::Exchange::output;
      if (is_term && number + 1 < i.last) return "uses an activation before it is summed over the group";
      if (const char* reason = give(Tensor::activation, m, number + 1, number, is_term); reason != nullptr) return reason;
      take_time(number);
    }
    if (!std::exchange(held_from_[place(m, i.first)], 1) && held_[as_size(m)]++ == 0) ++holding_;
    peak_ = std::max(peak_, holding_);
    return nullptr;
  }
  constexpr const char* loss(const Instruction& i) {
    const int m = i.micro_batch;
    if (const char* reason = values.missing(Tensor::activation, m, i.first); reason != nullptr) return reason;
    if (model_->output_is_sharded && shared_ != m) return "needs the other ranks' parts of the loss, which share_loss exchanges";
    if (training_ && !is_known(Op::count_start)) return "needs the number of rows of the step, which is not known before count_wait";
    if (started_[as_size(Op::totals_start)]) return "comes after totals_start, so the totals do not include it";
    if (std::exchange(loss_taken_[as_size(m)], 1)) return "computes the loss of a micro-batch twice";
    return values.give(Tensor::gradient, m, i.first, State::whole, false);
  }
  constexpr const char* backward_input(const Instruction& i) {
    if (const char* reason = values.missing(Tensor::gradient, i.micro_batch, i.last); reason != nullptr) return reason;
    for (int number = i.last - 1; number >= i.first; --number) {
      const bool passes = model_->passes_gradient(number);
      if (const char* reason = unpaused(i.micro_batch, number, true, number == i.last - 1); reason != nullptr) return reason;
      const bool is_term = layer(number).exchange == nn::Exchange::gradient_of_input && passes;
      if (is_term && number > i.first) return "uses a gradient before it is summed over the group";
      if (const char* reason = give(Tensor::gradient, i.micro_batch, number, number, is_term); reason != nullptr) return reason;
      if (passes) take_time(number);
    }
    return nullptr;
  }
  constexpr const char* backward_weight(const Instruction& i) {
    const int m = i.micro_batch;
    for (int number = i.last - 1; number >= i.first; --number) {
      if (layer(number).is_frozen) {
        end_hold(m, number);
        continue;
      }
      if (layer(number).parameters > 0) {
        if (const char* reason = values.missing(Tensor::gradient, m, number + 1); reason != nullptr) return reason;
        if (const char* reason = values.missing(Tensor::activation, m, number); reason != nullptr) return reason;
      }
      if (training_ && layer(number).pauses > 0 && progress(m, number, true) != 2 * layer(number).pauses)
        return "comes before the sums of the layer's backward, which are its gradients";
      if (layer(number).saved > 0 && values.state(Tensor::gradient, m, number) == State::none)
        return "comes before backward_input of a layer that saves gradients for it";
      if (const char* reason = units.may_add_gradients(number, i.accumulate); reason != nullptr) return reason;
      if (std::exchange(gradient_taken_[place(m, number)], 1)) return "takes the gradient of a micro-batch twice";
      units.add_gradients(number);
      take_time(number);
      end_hold(m, number);
    }
    return nullptr;
  }
  /// Records that backward of a layer is complete.
  constexpr void end_hold(int m, int number) {
    if (std::exchange(held_from_[place(m, number)], 0) && --held_[as_size(m)] == 0) --holding_;
  }

  constexpr const char* start_sum_of_step(const Instruction& i) {
    const bool is_norm = i.op == Op::norm_start;
    if (is_norm && i.group != 0) return "takes the norm over a group that is not the world";
    if (is_norm)
      if (const char* reason = units.missing_gradients(); reason != nullptr) return reason;
    if (!std::exchange(started_[as_size(i.op)], true)) return nullptr;
    return is_norm ? "takes the norm twice" : i.op == Op::count_start ? "counts the rows twice" : "takes the totals twice";
  }

  const Outline* model_;
  const Plan* plan_;
  bool training_;
  std::vector<char> gradient_taken_;  // [micro-batch][layer]: whether the gradient of its parameters is computed
  std::vector<char> held_from_;       // [micro-batch][layer]: whether a forward pass that starts at the layer has not had its backward yet
  std::vector<int> held_;             // [micro-batch]: number of such passes
  int holding_ = 0, peak_ = 0;        // number of micro-batches with such passes: now, and the maximum so far
  std::vector<char> loss_taken_;      // [micro-batch]
  std::vector<int> forward_progress_, backward_progress_;  // [micro-batch][layer]: see progress()
  int shared_ = -1;  // the micro-batch of the last share_loss, which overwrites the numbers of earlier ones
  std::array<bool, ops.size()> started_{}, known_{};  // [start operation]: sums for the whole step
};

}  // namespace pdp::plan::detail
