#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/cuts.hpp>
#include <pdp/plan/schedule.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

namespace detail {

/// Writes the instruction lists of one rank of a pipeline: the actions of a schedule, and the messages between stages.
///
/// Posts a receive one action before it is needed, so that the message arrives while the rank computes. Waits for a send as late as
/// possible, when its memory is needed again.
class PipelineWriter {
 public:
  constexpr PipelineWriter(const Outline& model, std::vector<int> firsts, PipelinePlace at, bool recompute)
      : model_{model}, firsts_{std::move(firsts)}, at_{at}, recompute_{recompute}, backward_weighted_(as_size(chunks()), 0) {}

  [[nodiscard]] constexpr Plan write(const std::vector<Action>& actions) {
    for (const Action& each : actions)
      if (each.chunk < 0 || each.chunk >= chunks() || each.micro_batch < 0 || each.micro_batch >= at_.micro_batches)
        throw PlanError{text("the schedule has rank ", at_.rank, " work on micro-batch ", each.micro_batch, " in its stage ", each.chunk,
                             "; there are ", at_.micro_batches, " micro-batches, and ", chunks(), " stages on each rank")};
    for (int chunk = 0; chunk < chunks(); ++chunk)  // one unit each, unless some of its layers are frozen
      for (const Unit& unit : units_by_size(model_, first(chunk), last(chunk), std::numeric_limits<Index>::max()))
        plan_.units.push_back(unit);
    plan_.micro_batches = at_.micro_batches;
    list_ = &plan_.step;
    put(collective(Op::count_start));
    if (!actions.empty()) ask(actions.front());
    for (std::size_t i = 0, next = 0; i < actions.size(); i = next) {
      next = i + weights_from(actions, i);
      if (next < actions.size()) ask(actions[next]);
      if (next - i > 1)
        backward_weights_together(actions[i], as_int(next - i));
      else
        carry_out(actions[i]);
    }
    end_sending();
    count();
    put(collective(Op::totals_start));
    for (int unit = 0; unit < as_int(plan_.units.size()); ++unit)
      if (!is_frozen(model_, plan_.units[as_size(unit)])) put(on_unit(Op::update, unit));
    put(collective(Op::totals_wait));
    write_evaluation();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] constexpr int stages() const { return as_int(firsts_.size()) - 1; }
  [[nodiscard]] constexpr int chunks() const { return stages() / at_.ranks; }
  [[nodiscard]] constexpr int stage(int chunk) const { return chunk * at_.ranks + at_.rank; }
  [[nodiscard]] constexpr int first(int chunk) const { return firsts_[as_size(stage(chunk))]; }
  [[nodiscard]] constexpr int last(int chunk) const { return firsts_[as_size(stage(chunk)) + 1]; }
  [[nodiscard]] constexpr bool is_last(int chunk) const { return stage(chunk) + 1 == stages(); }
  /// before() and after() return the rank of the previous or next stage, with which a stage of this rank exchanges messages. They return
  /// nullopt if there is no such stage, or if this rank holds it. They also return nullopt if the batch itself crosses the boundary, since
  /// every rank has the batch.
  [[nodiscard]] constexpr std::optional<int> before(int chunk) const {
    return model_.is_input(first(chunk)) ? std::nullopt : other(stage(chunk) - 1);
  }
  [[nodiscard]] constexpr std::optional<int> after(int chunk) const {
    return model_.is_input(last(chunk)) ? std::nullopt : other(stage(chunk) + 1);
  }
  [[nodiscard]] constexpr std::optional<int> other(int stage) const {
    if (stage < 0 || stage >= stages() || stage % at_.ranks == at_.rank) return std::nullopt;
    return stage % at_.ranks;
  }
  /// Returns whether a gradient goes back over the boundary before a layer.
  [[nodiscard]] constexpr bool returns(int layer) const { return model_.trains_before(layer); }
  /// Returns whether a stage has any work in backward.
  [[nodiscard]] constexpr bool needs_gradient(int chunk) const { return is_last(chunk) || returns(last(chunk)); }

  constexpr void put(const Instruction& instruction) { list_->push_back(instruction); }

  /// Returns the message that an action waits for, if any.
  [[nodiscard]] constexpr std::optional<Instruction> awaited(const Action& action) const {
    const int chunk = action.chunk;
    if (action.kind == Action::Kind::forward) {
      if (const auto peer = before(chunk)) return message(Op::receive_start, Tensor::activation, action.micro_batch, first(chunk), *peer);
    } else if (action.kind != Action::Kind::backward_weight) {
      if (const auto peer = after(chunk); peer && needs_gradient(chunk))
        return message(Op::receive_start, Tensor::gradient, action.micro_batch, last(chunk), *peer);
    }
    return std::nullopt;
  }
  constexpr void ask(const Action& action) {
    if (const auto start = awaited(action)) put(*start);
  }
  constexpr void wait_for(const Instruction& start) { put(wait_of(start)); }

  constexpr void carry_out(const Action& action) {
    if (const auto start = awaited(action)) wait_for(*start);
    const int m = action.micro_batch, chunk = action.chunk;
    if (action.kind == Action::Kind::forward) return forward(m, chunk);
    const bool backward = action.kind == Action::Kind::backward;
    if (action.kind != Action::Kind::backward_weight) {
      // Either the gradient has arrived, so the peer has received the activation, or no gradient ever comes back.
      if (const auto peer = after(chunk)) wait_for(message(Op::send_start, Tensor::activation, m, last(chunk), *peer));
      if (!needs_gradient(chunk)) return;
      if (recompute_ && !is_last(chunk)) put(compute(Op::forward, m, first(chunk), last(chunk)));
      for (int layer = last(chunk) - 1; layer >= first(chunk); --layer) {
        put(compute(Op::backward_input, m, layer, layer + 1));
        if (layer == first(chunk)) send_back(m, chunk);
        if (backward) put(backward_weight(m, chunk, layer, layer + 1));
      }
    } else if (needs_gradient(chunk)) {
      put(backward_weight(m, chunk, first(chunk), last(chunk)));
    }
    if (action.kind != Action::Kind::backward_input) backward_weighted_[as_size(chunk)] = 1;
  }
  /// Returns how many actions, beginning at `at`, are backward_weight of the same stage for consecutive micro-batches. Returns 1 if there
  /// is nothing to join.
  static constexpr std::size_t weights_from(const std::vector<Action>& actions, std::size_t at) {
    std::size_t end = at + 1;
    Action next = actions[at];
    for (; next.kind == Action::Kind::backward_weight && end < actions.size(); ++end) {
      ++next.micro_batch;
      if (actions[end] != next) break;
    }
    return end - at;
  }
  /// Goes layer by layer, so that the rows of a layer can be computed together.
  constexpr void backward_weights_together(const Action& first_action, int micro_batches) {
    const int chunk = first_action.chunk;
    if (!needs_gradient(chunk)) return;
    for (int layer = last(chunk) - 1; layer >= first(chunk); --layer) {
      for (int m = 0; m < micro_batches; ++m) {
        Instruction one = backward_weight(first_action.micro_batch + m, chunk, layer, layer + 1);
        one.accumulate = one.accumulate || m > 0;
        put(one);
      }
    }
    backward_weighted_[as_size(chunk)] = 1;
  }
  constexpr void forward(int m, int chunk) {
    put(compute(Op::forward, m, first(chunk), last(chunk)));
    if (is_last(chunk)) {
      count();
      put(compute(Op::loss, m, last(chunk), last(chunk)));
    }
    if (const auto peer = after(chunk)) put(message(Op::send_start, Tensor::activation, m, last(chunk), *peer));
  }
  [[nodiscard]] constexpr Instruction backward_weight(int m, int chunk, int first, int last) const {
    return compute(Op::backward_weight, m, first, last, backward_weighted_[as_size(chunk)] != 0);
  }
  /// Sends a stage's gradient to the previous stage. Keeps at most one such message in flight.
  constexpr void send_back(int m, int chunk) {
    const auto peer = before(chunk);
    if (!peer || !returns(first(chunk))) return;
    end_sending();
    sending_ = message(Op::send_start, Tensor::gradient, m, first(chunk), *peer);
    put(*sending_);
  }
  constexpr void end_sending() {
    if (sending_) wait_for(*sending_);
    sending_.reset();
  }
  constexpr void count() {
    if (!std::exchange(counted_, true)) put(collective(Op::count_wait));
  }

  /// Writes the forward pass of one micro-batch, after which every rank has the model's output.
  constexpr void write_evaluation() {
    list_ = &plan_.evaluate;
    const int layers = model_.size(), holder = (stages() - 1) % at_.ranks;
    const auto exchange = [this](bool sends, int boundary, int peer) {
      const Instruction start = message(sends ? Op::send_start : Op::receive_start, Tensor::activation, 0, boundary, peer);
      put(start);
      wait_for(start);
    };
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      if (const auto peer = before(chunk)) exchange(false, first(chunk), *peer);
      put(compute(Op::forward, 0, first(chunk), last(chunk)));
      if (const auto peer = after(chunk)) exchange(true, last(chunk), *peer);
    }
    if (at_.rank != holder) return exchange(false, layers, holder);
    put(compute(Op::loss, 0, layers, layers));
    for (int peer = 0; peer < at_.ranks; ++peer)
      if (peer != holder) exchange(true, layers, peer);
  }

  const Outline& model_;
  std::vector<int> firsts_;
  PipelinePlace at_;
  bool recompute_;
  std::vector<char> backward_weighted_;  // [chunk]: whether its parameters have gradients already
  Plan plan_;
  Instructions* list_ = nullptr;
  std::optional<Instruction> sending_;
  bool counted_ = false;
};

}  // namespace detail

/// Pipeline parallelism: the model is cut into stages, one or several on each rank, and micro-batches pass through them one after another.
/// With one micro-batch it is model parallelism: a rank computes while the others wait.
template <Schedule S = OneForwardOneBackward>
struct Pipeline {
  int stages = 0;         // 0, or the number of stages on all ranks together: ranks * schedule.chunks
  int micro_batches = 1;  // in a step's batch; the last ones may be short or empty
  S schedule{};
  Cuts cuts{};
  /// Keeps only the input of a stage for each micro-batch, and computes the other activations again before backward. This saves memory for
  /// micro-batches in flight, at the cost of a third more computation. The last stage goes backward at once and keeps everything. Chen et
  /// al., "Training deep nets with sublinear memory cost", arXiv:1604.06174.
  bool recompute = false;
  /// The number of micro-batches for which the gradients of a stage's parameters are computed together: a few large products instead of
  /// many small ones. Fewer products save time, since each one reads and writes gradients that may be larger than its operands. The
  /// operands are kept until the joint product.
  int join_weights = 1;

  [[nodiscard]] constexpr Plan plan(const Outline& model, RankInWorld at) const {
    check_layers(model);
    check_micro_batches("micro_batches", micro_batches);
    check_micro_batches("join_weights", join_weights);
    if (schedule.chunks < 1) throw ConfigError{text("chunks = ", schedule.chunks, " was given; a rank holds at least 1 stage")};
    if (const std::int64_t all = std::int64_t{at.size} * schedule.chunks; all > most_numbered)
      throw ConfigError{
          text("a model of ", model.size(), " layers cannot be cut into ", all, " stages; a plan takes at most ", most_numbered)};
    if (stages != 0 && stages != at.size * schedule.chunks)
      throw ConfigError{text("stages = ", stages, " was given, but the world's ", at.size, " ranks hold ", schedule.chunks, " each, ",
                             at.size * schedule.chunks, " together")};
    const PipelinePlace place{at.rank, at.size, micro_batches};
    std::vector<Action> actions = schedule.actions(place);
    if (join_weights > 1) actions = plan::join_weights(actions, join_weights);
    return detail::PipelineWriter{model, stages_of(model, at.size * schedule.chunks, cuts), place, recompute}.write(actions);
  }
};

static_assert(Strategy<Pipeline<>> && Strategy<Pipeline<GPipe>> && Strategy<Pipeline<Interleaved>> && Strategy<Pipeline<ZeroBubble>>);

#ifdef PDP_SEPARATE_CORE
extern template Plan detail::plan_of<Pipeline<>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Pipeline<GPipe>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Pipeline<Interleaved>>(const void*, const Outline&, RankInWorld);
extern template Plan detail::plan_of<Pipeline<ZeroBubble>>(const void*, const Outline&, RankInWorld);
#endif

}  // namespace pdp::strategy
