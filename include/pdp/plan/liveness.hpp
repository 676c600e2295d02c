#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// The offsets of all tensors of a list of instructions in one buffer, in elements per row. Tensors that are never needed at the same time
/// may share memory. Lifetimes follow from the list alone, so peak memory follows from the schedule. A layer that works in place writes its
/// output over its input, if the input is not needed any more.
class Liveness {
 public:
  static constexpr Index nowhere = -1;

  Liveness() = default;
  /// `keep_output`: the model's output stays readable after the list.
  Liveness(const nn::Outline& model, const Instructions& list, int micro_batches, bool keep_output);

  /// Returns the size of the buffer, in elements per row.
  [[nodiscard]] Index size() const { return size_; }
  /// Returns the offset of a boundary's tensor or of a layer's saved memory, in elements per row: multiply it by the rows of a micro-batch.
  /// Returns `nowhere` if the list does not need the tensor.
  [[nodiscard]] Index offset(Kind kind, int micro_batch, int number) const {
    return tensors_[as_size((Index{micro_batch} * 3 + as_int(kind)) * stride_ + number)].offset;
  }

 private:
  /// A lifetime: from the instruction that writes a tensor to the last one that reads it.
  struct Life {
    Index first, last;
    friend constexpr bool operator==(const Life&, const Life&) = default;
  };
  struct Tensor {
    Index offset = nowhere;
    Index size = 0;
    std::vector<Life> lives{};  // one after another: a recomputed tensor is not needed in between
    int micro_batches = 1;      // number of consecutive micro-batches stored from this offset on
    bool follows = false;       // lies behind the rows of the previous micro-batch
  };
  /// Returns whether the lifetimes of two tensors overlap.
  static bool meet(const Tensor& a, const Tensor& b);

  [[nodiscard]] Index tensors_per_micro_batch() const { return 3 * Index{model_->size() + 1}; }

  /// The memory that a layer's output shares with its input: none, that of the activation, also that of the gradient.
  enum class Shares : std::uint8_t { nothing, its_output, all };

  /// Returns the memory that a layer's output shares with its input.
  [[nodiscard]] Shares shares(int layer, const Instructions& list, int micro_batches, bool keep_output) const;
  /// Returns the first boundary whose tensor has the same memory as the tensor at boundary `number`.
  [[nodiscard]] int origin(Kind kind, int number) const;

  /// Extends the lifetime of a tensor to instruction `at`. `written`: the tensor is overwritten, so a new lifetime begins.
  void touch(Kind kind, int micro_batch, int number, Index at, bool written = false);

  /// Places the rows of micro-batches one after another if their gradients of parameters are computed together. Skips tensors that are
  /// joined with other micro-batches already.
  void join(const Instruction& i, int count);
  void join(Kind kind, int first, int count, int number);

  void follow(const Instruction& i, Index at);

  /// Assigns offsets by first fit, largest first. Each tensor gets the lowest offset that is free for its whole lifetime. The rows of
  /// joined micro-batches are placed together.
  void place();

  static Index end(const Tensor& tensor) { return padded<float>(tensor.offset + tensor.size); }
  /// Returns the lowest free offset. `placed`: sorted by offset.
  static Index fit(const Tensor& tensor, const std::vector<Tensor*>& placed);
  /// Returns the lowest free offset for the joined rows of several micro-batches, each with its own lifetime.
  [[nodiscard]] Index fit_all(const Tensor* first, const std::vector<Tensor*>& placed) const;

  const nn::Outline* model_ = nullptr;  // only during construction
  int stride_ = 0;
  std::vector<Shares> shares_;  // [layer]
  std::vector<Tensor> tensors_;
  Index size_ = 0;
};

/// The offsets of a rank's tensors in steps and in evaluations. Both use the same buffer, one after the other.
struct Boundaries {
  Liveness step, evaluation;

  Boundaries(const nn::Outline& model, const Plan& plan)
      : step{model, plan.step, plan.micro_batches, false}, evaluation{model, plan.evaluate, 1, true} {}
  /// Returns the size of the buffer, in elements per row of a micro-batch.
  [[nodiscard]] Index row_elements() const { return std::max(step.size(), evaluation.size()); }
};

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/liveness.hpp>
#endif
