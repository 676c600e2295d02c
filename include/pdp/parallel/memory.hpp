#pragma once

#include <algorithm>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/parallel/instruction.hpp>

namespace pdp::parallel {

/// A tensor that lives between instructions.
enum class Kind : std::uint8_t { activation, gradient, saved };

/// Where every tensor of a list of instructions lies in one buffer, in elements of one row. Two that are never needed at the same time may
/// share their place: what a list needs is known from the list alone, so peak memory follows from the schedule.
class Memory {
 public:
  static constexpr Index nowhere = -1;

  Memory() = default;
  /// `keep_output`: the model's output stays readable after the list.
  Memory(const nn::Outline& model, const Instructions& list, int micro_batches, bool keep_output) : model_{&model} {
    tensors_.resize(static_cast<std::size_t>(micro_batches * slots()));
    for (std::size_t at = 0; at < list.size(); ++at) follow(list[at], static_cast<Index>(at));
    if (keep_output) touch(Kind::activation, 0, model.size(), static_cast<Index>(list.size()));
    place();
    model_ = nullptr;
    stride_ = model.size() + 1;
  }

  /// Elements of one row of the whole buffer.
  [[nodiscard]] Index size() const { return size_; }
  /// Where a boundary's tensor, or a layer's saved memory, begins; nowhere if the list does not need it. Times the rows of a micro-batch.
  [[nodiscard]] Index offset(Kind kind, int micro_batch, int number) const {
    return tensors_[static_cast<std::size_t>((micro_batch * 3 + static_cast<int>(kind)) * stride_ + number)].offset;
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
  };
  static bool meet(const Tensor& a, const Tensor& b) {
    for (const Life& one : a.lives)
      for (const Life& other : b.lives)
        if (one.first <= other.last && other.first <= one.last) return true;
    return false;
  }

  [[nodiscard]] int slots() const { return 3 * (model_->size() + 1); }

  /// `written`: anew, whatever was there before.
  void touch(Kind kind, int micro_batch, int number, Index at, bool written = false) {
    if (kind != Kind::saved)
      while (number > 0 && model_->layers[static_cast<std::size_t>(number) - 1].is_view) --number;
    if (kind == Kind::activation && number == 0) return;  // the batch itself, which the caller holds
    Tensor& tensor = tensors_[static_cast<std::size_t>(micro_batch * slots() + static_cast<int>(kind) * (model_->size() + 1) + number)];
    tensor.size = kind == Kind::saved ? model_->layers[static_cast<std::size_t>(number)].saved : model_->width(number);
    if (tensor.lives.empty() || (written && tensor.lives.back().first != at)) tensor.lives.push_back({at, at});
    tensor.lives.back().last = at;
  }

  void follow(const Instruction& i, Index at) {
    const int m = i.micro_batch;
    switch (i.op) {
      case Op::forward:
      case Op::backward_input:
      case Op::backward_weight:
        for (int layer = i.first; layer < i.last; ++layer) {
          if (i.op == Op::backward_input && !model_->passes_gradient(layer)) continue;
          touch(Kind::activation, m, layer, at);
          touch(Kind::activation, m, layer + 1, at, i.op == Op::forward && !model_->layers[static_cast<std::size_t>(layer)].is_view);
          if (i.op == Op::backward_input) touch(Kind::gradient, m, layer, at);
          if (i.op != Op::forward) touch(Kind::gradient, m, layer + 1, at);
          touch(Kind::saved, m, layer, at, i.op == Op::forward);
        }
        break;
      case Op::share_loss:
        touch(Kind::activation, m, i.first, at);
        break;
      case Op::loss:
        touch(Kind::activation, m, i.first, at);
        touch(Kind::gradient, m, i.first, at);
        break;
      case Op::send_start:
      case Op::send_wait:
      case Op::receive_start:
      case Op::receive_wait:
      case Op::sum_start:
      case Op::sum_wait:
        touch(i.tensor == parallel::Tensor::activation ? Kind::activation : Kind::gradient, m, i.first, at);
        break;
      default:
        break;
    }
  }

  /// First fit, largest first: each tensor goes to the lowest place that is free for all its life.
  void place() {
    std::vector<Tensor*> order, placed;
    for (Tensor& tensor : tensors_)
      if (!tensor.lives.empty() && tensor.size > 0) order.push_back(&tensor);
    std::ranges::stable_sort(order, [](const Tensor* a, const Tensor* b) { return a->size > b->size; });
    for (Tensor* tensor : order) {
      const Index size = padded<float>(tensor->size);
      Index offset = 0;
      for (const Tensor* other : placed) {  // sorted by offset
        if (!meet(*other, *tensor)) continue;
        if (other->offset >= offset + size) break;
        offset = std::max(offset, other->offset + padded<float>(other->size));
      }
      tensor->offset = offset;
      size_ = std::max(size_, offset + size);
      placed.insert(std::ranges::upper_bound(placed, offset, {}, [](const Tensor* t) { return t->offset; }), tensor);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {  // a view lies where its source lies
      const int number = static_cast<int>(i) % (model_->size() + 1);
      const bool saved = static_cast<int>(i) / (model_->size() + 1) % 3 == static_cast<int>(Kind::saved);
      if (!saved && number > 0 && model_->layers[static_cast<std::size_t>(number) - 1].is_view) tensors_[i].offset = tensors_[i - 1].offset;
    }
  }

  const nn::Outline* model_ = nullptr;  // while it is made
  int stride_ = 0;
  std::vector<Tensor> tensors_;
  Index size_ = 0;
};

}  // namespace pdp::parallel
