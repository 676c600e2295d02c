#pragma once

/// Definitions for pdp/plan/liveness.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/liveness.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

PDP_INLINE Liveness::Liveness(const nn::Outline& model, const Instructions& list, int micro_batches, bool keep_output) : model_{&model} {
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

PDP_INLINE Liveness::Shares Liveness::shares(int layer, const Instructions& list, int micro_batches, bool keep_output) const {
  const auto& layers = model_->layers;
  const nn::Outline::Layer& own = layers[as_size(layer)];
  if (own.is_view) return Shares::all;
  if (!own.works_in_place || own.in != own.out || model_->is_input(layer)) return Shares::nothing;
  int writer = layer - 1;
  while (layers[as_size(writer)].is_view) --writer;
  if (!layers[as_size(writer)].forgets_output) return Shares::nothing;
  // The output may be written over the input if two conditions hold for each micro-batch. The input is written anew before each run of the
  // layer, and nothing else reads it. After the input is written again, the output is not read until the layer has run again.
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

PDP_INLINE int Liveness::origin(Kind kind, int number) const {
  if (kind == Kind::saved) return number;
  const Shares least = kind == Kind::activation ? Shares::its_output : Shares::all;
  while (number > 0 && shares_[as_size(number) - 1] >= least) --number;
  return number;
}

PDP_INLINE void Liveness::touch(Kind kind, int micro_batch, int number, Index at, bool written) {
  number = origin(kind, number);
  if (kind == Kind::activation && number == 0) return;  // the batch itself, in memory of the caller
  Tensor& tensor = tensors_[as_size(micro_batch * tensors_per_micro_batch() + as_int(kind) * (model_->size() + 1) + number)];
  tensor.size = kind == Kind::saved ? model_->layers[as_size(number)].saved : model_->width(number);
  if (tensor.lives.empty() || (written && tensor.lives.back().first != at)) tensor.lives.push_back({at, at});
  tensor.lives.back().last = at;
}

PDP_INLINE void Liveness::join(const Instruction& i, int count) {
  for (int layer = i.first; layer < i.last; ++layer) {
    const nn::Outline::Layer& of = model_->layers[as_size(layer)];
    if (!model_->trains(layer) || of.saved > 0 || of.pauses > 0) continue;
    join(Kind::activation, i.micro_batch, count, layer);
    join(Kind::activation, i.micro_batch, count, layer + 1);
    join(Kind::gradient, i.micro_batch, count, layer + 1);
  }
}

PDP_INLINE void Liveness::join(Kind kind, int first, int count, int number) {
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

PDP_INLINE void Liveness::follow(const Instruction& i, Index at) {
  for_each_effect(i, *model_, [&](const Effect& effect) {
    const bool shares = effect.kind == Kind::activation && effect.layer >= 0 && shares_[as_size(effect.layer)] != Shares::nothing;
    touch(effect.kind, i.micro_batch, effect.number, at, effect.kind != Kind::gradient && effect.access == Access::write && !shares);
  });
}

PDP_INLINE void Liveness::place() {
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

PDP_INLINE Index Liveness::fit(const Tensor& tensor, const std::vector<Tensor*>& placed) {
  Index offset = 0;
  for (const Tensor* other : placed) {
    if (!meet(*other, tensor)) continue;
    if (other->offset >= offset + padded<float>(tensor.size)) break;
    offset = std::max(offset, end(*other));
  }
  return offset;
}

PDP_INLINE Index Liveness::fit_all(const Tensor* first, const std::vector<Tensor*>& placed) const {
  Index offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int m = 0; m < first->micro_batches; ++m) {
      for (const Tensor* other : placed) {
        const Index begin = offset + m * first->size;
        if (other->offset >= begin + first->size) break;
        if (end(*other) <= begin || !meet(*other, first[m * tensors_per_micro_batch()])) continue;
        offset = padded<float>(end(*other) - m * first->size);
        moved = true;
      }
    }
  }
  return offset;
}

PDP_INLINE bool Liveness::meet(const Tensor& a, const Tensor& b) {
  for (const Life& one : a.lives)
    for (const Life& other : b.lives)
      if (one.first <= other.last && other.first <= one.last) return true;
  return false;
}

}  // namespace pdp::plan
