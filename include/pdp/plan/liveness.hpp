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

/// Where every tensor of a list of instructions lies in one buffer, in elements of one row. Two that are never needed at the same time may
/// share their place: what a list needs is known from the list alone, so peak memory follows from the schedule. A layer that works in place
/// has its output where its input was, if nobody wants the input any more.
class Liveness {
 public:
  static constexpr Index nowhere = -1;

  Liveness() = default;
  /// `keep_output`: the model's output stays readable after the list.
  Liveness(const nn::Outline& model, const Instructions& list, int micro_batches, bool keep_output);

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
  static bool meet(const Tensor& a, const Tensor& b);

  [[nodiscard]] Index tensors_per_micro_batch() const { return 3 * Index{model_->size() + 1}; }

  enum class Shares : std::uint8_t { nothing, its_output, all };  // with its input: the memory of the activation, or of its gradient, too

  /// What a layer's output shares with its input.
  [[nodiscard]] Shares shares(int layer, const Instructions& list, int micro_batches, bool keep_output) const;
  /// The first boundary whose tensor lies where that of this one does.
  [[nodiscard]] int origin(Kind kind, int number) const;

  /// `written`: anew, whatever was there before.
  void touch(Kind kind, int micro_batch, int number, Index at, bool written = false);

  /// Has the rows of micro-batches whose gradients of parameters are computed together lie together, where no others have been first.
  void join(const Instruction& i, int count);
  void join(Kind kind, int first, int count, int number);

  void follow(const Instruction& i, Index at);

  /// First fit, largest first: each tensor goes to the lowest place that is free for all its life, with those whose rows follow its own.
  void place();

  static Index end(const Tensor& tensor) { return padded<float>(tensor.offset + tensor.size); }
  /// The lowest free place. `placed`: sorted by offset.
  static Index fit(const Tensor& tensor, const std::vector<Tensor*>& placed);
  /// The same for the rows of several micro-batches, each of which lives as long as it is needed.
  [[nodiscard]] Index fit_all(const Tensor* first, const std::vector<Tensor*>& placed) const;

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

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/liveness.hpp>
#endif
