#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// Where every tensor of a list of instructions lies in one buffer, in elements of one row. Two that are never needed at the same time may
/// share their place: what a list needs is known from the list alone, so peak memory follows from the schedule. A layer that works in place
/// has its output where its input was, if nobody wants the input any more.
class Liveness {
 public:
  static constexpr Index nowhere = -1;

  Liveness() = default;
  /// `keep_output`: the model's output stays readable after the list.
  Liveness(const nn::Outline& model, const Instructions& list, int micro_batches, bool keep_output) : model_{&model} {
    tensors_.resize(as_size(micro_batches) * as_size(tensors_per_micro_batch()));
    for (int layer = 0; layer < model.size(); ++layer) shares_.push_back(shares(layer, list, micro_batches, keep_output));
    for (std::size_t at = 0; at < list.size(); ++at) follow(list[at], as_index(at));
    for (std::size_t at = 0; at < list.size(); at += joined(list, at))
      if (const std::size_t count = joined(list, at); count > 1) join(list[at], as_int(count));
    if (keep_output) touch(Kind::activation, 0, model.size(), as_index(list.size()));
    place();
    model_ = nullptr;
    stride_ = model.size() + 1;
  }

  /// Elements of one row of the whole buffer.
  [[nodiscard]] Index size() const { return size_; }
  /// Where a boundary's tensor, or a layer's saved memory, begins; nowhere if the list does not need it. Times the rows of a micro-batch.
  [[nodiscard]] Index offset(Kind kind, int micro_batch, int number) const {
    return tensors_[as_size((Index{micro_batch} * 3 + as_int(kind)) * stride_ + number)].offset;
  }

 private:
  /// From the instruction that writes a tensor to the one that reads it last.
  struct Life {
    Index first, last;
    friend constexpr bool operator==(const Life&, const Life&) = default;
  };
  struct Tensor {
    Index offset = nowhere;
    Index size = 0;
    std::vector<Life> lives{};  // one after another: what is computed again is not needed in between
    int micro_batches = 1;      // whose rows lie from here on, one after another
    bool follows = false;       // the rows of the micro-batch before
  };
  static bool meet(const Tensor& a, const Tensor& b) {
    for (const Life& one : a.lives)
      for (const Life& other : b.lives)
        if (one.first <= other.last && other.first <= one.last) return true;
    return false;
  }

  [[nodiscard]] Index tensors_per_micro_batch() const { return 3 * Index{model_->size() + 1}; }

  enum class Shares : std::uint8_t { nothing, its_output, all };  // with its input: the memory of the activation, or of its gradient, too

  /// What a layer's output shares with its input.
  [[nodiscard]] Shares shares(int layer, const Instructions& list, int micro_batches, bool keep_output) const {
    const auto& layers = model_->layers;
    const nn::Outline::Layer& own = layers[as_size(layer)];
    if (own.is_view) return Shares::all;
    if (!own.works_in_place || own.in != own.out || model_->is_input(layer)) return Shares::nothing;
    int writer = layer - 1;
    while (layers[as_size(writer)].is_view) --writer;
    if (!layers[as_size(writer)].forgets_output) return Shares::nothing;
    // Each time the layer is computed, its input has come anew, and nobody else reads that. Where it comes once more, nobody reads the
    // output before the layer is computed once more, too.
    struct Of {
      bool has_input = false, has_output = false;
      [[nodiscard]] bool is_lost() const { return has_input && has_output; }
    };
    std::vector<Of> of(as_size(micro_batches));
    for (const Instruction& i : list) {
      Of& at = of[as_size(i.micro_batch)];
      const auto is_between = [&](const Effect& effect) {
        return effect.kind == Kind::activation && writer < effect.number && effect.number <= layer;
      };
      if (i.op == Op::forward) {
        if (i.first > layer && at.is_lost()) return Shares::nothing;
        if (i.first <= writer && writer < i.last) at.has_input = true;
        if (layer < i.first || i.last <= layer) continue;
        if (!at.has_input) return Shares::nothing;
        at = {false, true};
        continue;
      }
      bool may_share = true;
      for_each_effect(i, *model_, [&](const Effect& effect) {
        if (effect.access == Access::arrive && is_start(i.op) && is_between(effect)) at.has_input = true;
        if (effect.access == Access::read && (at.is_lost() || (effect.layer < 0 && is_between(effect)))) may_share = false;
      });
      if (!may_share) return Shares::nothing;
    }
    const bool is_computed = std::ranges::any_of(of, [](const Of& each) { return each.has_output; });
    if (!is_computed || (keep_output && std::ranges::any_of(of, &Of::is_lost))) return Shares::nothing;
    return Shares::its_output;
  }
  /// The first boundary whose tensor lies where that of this one does.
  [[nodiscard]] int origin(Kind kind, int number) const {
    if (kind == Kind::saved) return number;
    const Shares least = kind == Kind::activation ? Shares::its_output : Shares::all;
    while (number > 0 && shares_[as_size(number) - 1] >= least) --number;
    return number;
  }

  /// `written`: anew, whatever was there before.
  void touch(Kind kind, int micro_batch, int number, Index at, bool written = false) {
    number = origin(kind, number);
    if (kind == Kind::activation && number == 0) return;  // the batch itself, which the caller holds
    Tensor& tensor = tensors_[as_size(micro_batch * tensors_per_micro_batch() + as_int(kind) * (model_->size() + 1) + number)];
    tensor.size = kind == Kind::saved ? model_->layers[as_size(number)].saved : model_->width(number);
    if (tensor.lives.empty() || (written && tensor.lives.back().first != at)) tensor.lives.push_back({at, at});
    tensor.lives.back().last = at;
  }

  /// Has the rows of micro-batches whose gradients of parameters are computed together lie together, where no others have been first.
  void join(const Instruction& i, int count) {
    for (int layer = i.first; layer < i.last; ++layer) {
      const nn::Outline::Layer& of = model_->layers[as_size(layer)];
      if (of.parameters == 0 || of.saved > 0) continue;
      join(Kind::activation, i.micro_batch, count, layer);
      join(Kind::activation, i.micro_batch, count, layer + 1);
      join(Kind::gradient, i.micro_batch, count, layer + 1);
    }
  }
  void join(Kind kind, int first, int count, int number) {
    number = origin(kind, number);
    if (kind == Kind::activation && number == 0) return;
    const auto at = [&](int m) -> Tensor& {
      return tensors_[as_size(m * tensors_per_micro_batch() + as_int(kind) * (model_->size() + 1) + number)];
    };
    for (int m = first; m < first + count; ++m)
      if (at(m).micro_batches > 1 || at(m).follows) return;
    at(first).micro_batches = count;
    for (int m = first + 1; m < first + count; ++m) at(m).follows = true;
  }

  void follow(const Instruction& i, Index at) {
    for_each_effect(i, *model_, [&](const Effect& effect) {
      const bool shares = effect.kind == Kind::activation && effect.layer >= 0 && shares_[as_size(effect.layer)] != Shares::nothing;
      touch(effect.kind, i.micro_batch, effect.number, at, effect.kind != Kind::gradient && effect.access == Access::write && !shares);
    });
  }

  /// First fit, largest first: each tensor goes to the lowest place that is free for all its life, with those whose rows follow its own.
  void place() {
    std::vector<Tensor*> order, placed;
    for (Tensor& tensor : tensors_)
      if (!tensor.lives.empty() && tensor.size > 0 && !tensor.follows) order.push_back(&tensor);
    const auto room = [](const Tensor* tensor) { return padded<float>(tensor->size * tensor->micro_batches); };
    std::ranges::stable_sort(order, [&](const Tensor* a, const Tensor* b) { return room(a) > room(b); });
    for (Tensor* tensor : order) {
      const Index offset = tensor->micro_batches > 1 ? fit_all(tensor, placed) : fit(*tensor, placed);
      size_ = std::max(size_, offset + room(tensor));
      for (int m = 0; m < tensor->micro_batches; ++m) {
        Tensor* const each = tensor + m * tensors_per_micro_batch();
        each->offset = offset + m * tensor->size;
        placed.insert(std::ranges::upper_bound(placed, each->offset, {}, [](const Tensor* t) { return t->offset; }), each);
      }
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const int number = as_int(i) % (model_->size() + 1), of = as_int(i) / (model_->size() + 1);
      const int first = origin(static_cast<Kind>(of % 3), number);
      if (first != number) tensors_[i].offset = tensors_[i - as_size(number - first)].offset;
    }
  }

  static Index end(const Tensor& tensor) { return padded<float>(tensor.offset + tensor.size); }
  /// The lowest free place. `placed`: sorted by offset.
  static Index fit(const Tensor& tensor, const std::vector<Tensor*>& placed) {
    Index offset = 0;
    for (const Tensor* other : placed) {
      if (!meet(*other, tensor)) continue;
      if (other->offset >= offset + padded<float>(tensor.size)) break;
      offset = std::max(offset, end(*other));
    }
    return offset;
  }
  /// The same for the rows of several micro-batches, each of which lives as long as it is needed.
  [[nodiscard]] Index fit_all(const Tensor* first, const std::vector<Tensor*>& placed) const {
    Index offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int m = 0; m < first->micro_batches; ++m)
        for (const Tensor* other : placed) {
          const Index begin = offset + m * first->size;
          if (other->offset >= begin + first->size) break;
          if (end(*other) <= begin || !meet(*other, first[m * tensors_per_micro_batch()])) continue;
          offset = padded<float>(end(*other) - m * first->size);
          moved = true;
        }
    }
    return offset;
  }

  const nn::Outline* model_ = nullptr;  // while it is made
  int stride_ = 0;
  std::vector<Shares> shares_;  // of layers
  std::vector<Tensor> tensors_;
  Index size_ = 0;
};

/// Where the tensors of a rank lie: those of its steps and those of its evaluations, which use one memory in turn.
struct Boundaries {
  Liveness step, evaluation;

  Boundaries(const nn::Outline& model, const Plan& plan)
      : step{model, plan.step, plan.micro_batches, false}, evaluation{model, plan.evaluate, 1, true} {}
  /// Elements for each row of a micro-batch.
  [[nodiscard]] Index row_elements() const { return std::max(step.size(), evaluation.size()); }
};

}  // namespace pdp::plan
