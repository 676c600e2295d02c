#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/host/device.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/parallel/memory.hpp>
#include <pdp/parallel/strategy.hpp>

namespace pdp::parallel {

/// What a rank brings to a step: its share of a batch, of any number of rows up to what the engine was made for, none included.
template <class T, class Target>
struct Batch {
  Matrix<const T> x;
  std::span<const Target> targets;
  Index global_rows = 0;  // over all ranks; 0: not known, the ranks count it together
};

/// What a step or an evaluation reports.
struct Totals {
  double loss = 0;     // sum over rows
  double correct = 0;  // rows
  double rows = 0;

  [[nodiscard]] double mean_loss() const { return rows > 0 ? loss / rows : 0; }
  [[nodiscard]] double accuracy() const { return rows > 0 ? correct / rows : 0; }
};

/// Sizes that an engine is made for.
struct Limits {
  Index rows = 0;  // the largest share of a step
  std::uint64_t seed = 0;
};

/// Carries out a plan: the one loop that all strategies share. It never sees the strategy. All memory is made here, from the plan; a step
/// allocates nothing. It borrows the communicator.
template <comm::Communicator C, nn::Block Model, class Loss, optim::Optimizer Optimizer, UniformPrecision P = Float32, class D = host::Cpu>
class Engine {
 public:
  using T = typename P::compute;
  using Target = typename Loss::Target;
  using StepBatch = Batch<T, Target>;
  static_assert(Device<D, T>, "pdp: the device lacks one of the operations of core/device.hpp for this element type");
  static_assert(loss::Loss<Loss, D, T>, "pdp: the loss is not a pdp::loss::Loss on this device (see loss/loss.hpp)");

  Engine(C& world, Plan plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits)
      : plan_{std::move(plan)},
        loss_{loss},
        optimizer_{optimizer},
        stage_{model, input, runs(plan_), limits.seed},
        limits_{limits},
        micro_rows_{(limits.rows + plan_.micro_batches - 1) / plan_.micro_batches} {
    owned_.reserve(plan_.groups.size());
    groups_.push_back(&world);
    for (const GroupSpec& group : plan_.groups) groups_.push_back(&owned_.emplace_back(world.split(group.color, group.key)));
    constexpr Index fields = static_cast<Index>(optim::state_fields<Optimizer>);
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      optimizer_state_.emplace_back(fields * static_cast<Index>(stage_.gradients(static_cast<int>(u)).size()));
      reductions_.emplace_back();
    }
    make_memory();
    run(plan_.setup, {}, {}, false);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] auto& stage() { return stage_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// The most rows of one evaluation.
  [[nodiscard]] Index evaluation_rows() const { return micro_rows_; }

  /// One step of training, on every rank at once. Gives the totals over all ranks, from before the update.
  Totals step(const StepBatch& batch, float lr_factor = 1) {
    check(batch, limits_.rows);
    totals_ = {};
    ++steps_;
    bind_input(step_slots_, batch.x);
    run(plan_.step, batch, optim::StepInfo{steps_, lr_factor}, true);
    return {totals_[0], totals_[1], static_cast<double>(global_rows_)};
  }

  /// Loss and accuracy of this rank's rows, without a change to anything. No message travels unless the plan says so.
  Totals evaluate(const StepBatch& batch) {
    check(batch, evaluation_rows());
    totals_ = {};
    bind_input(evaluation_slots_, batch.x);
    run(plan_.evaluate, batch, {}, false);
    return {totals_[0], totals_[1], static_cast<double>(batch.x.rows)};
  }

  /// The model's output for this rank's rows. It lives until the next call.
  Matrix<const T> predict(Matrix<const T> x) {
    check_rows(x, evaluation_rows());
    bind_input(evaluation_slots_, x);
    run(plan_.evaluate, {.x = x}, {}, false);
    return stage_.activation(evaluation_slots_.front(), stage_.outline().size());
  }

 private:
  using Slot = nn::Slot<T>;
  using Work = typename C::Work;

  static std::vector<std::pair<int, int>> runs(const Plan& plan) {
    std::vector<std::pair<int, int>> runs;
    for (const Unit& unit : plan.units) runs.emplace_back(unit.first, unit.last);
    return runs;
  }

  void make_memory() {
    const nn::Outline& model = stage_.outline();
    const Memory step{model, plan_.step, plan_.micro_batches, false}, evaluation{model, plan_.evaluate, 1, true};
    memory_ = Buffer<T>{std::max(step.size(), evaluation.size()) * micro_rows_};
    const auto slots = [&](const Memory& memory, int micro_batches) {
      std::vector<Slot> made(static_cast<std::size_t>(micro_batches), Slot{model.size()});
      const auto at = [&](Kind kind, int m, int number) {
        const Index offset = memory.offset(kind, m, number);
        return offset == Memory::nowhere ? nullptr : memory_.data() + offset * micro_rows_;
      };
      for (int m = 0; m < micro_batches; ++m)
        for (int number = 0; number <= model.size(); ++number) {
          const auto n = static_cast<std::size_t>(number);
          made[static_cast<std::size_t>(m)].activations[n] = at(Kind::activation, m, number);
          made[static_cast<std::size_t>(m)].gradients[n] = at(Kind::gradient, m, number);
          if (number < model.size()) made[static_cast<std::size_t>(m)].saved[n] = at(Kind::saved, m, number);
        }
      return made;
    };
    step_slots_ = slots(step, plan_.micro_batches);
    evaluation_slots_ = slots(evaluation, 1);
    for (const Instruction& i : plan_.step)
      if (i.op == Op::send_start || i.op == Op::receive_start) messages_.push_back({i, {}});
    for (const Instruction& i : plan_.evaluate)
      if (i.op == Op::send_start || i.op == Op::receive_start) messages_.push_back({i, {}});
  }

  void check_rows(Matrix<const T> x, Index limit) const {
    if (x.rows > limit)
      throw ShapeError{text("a batch of ", x.rows, " rows was given, but memory was made for at most ", limit,
                            "; make the trainer with a larger batch, or cut this one")};
    if (x.rows > 0 && x.cols != stage_.outline().width(0))
      throw ShapeError{text("samples of ", x.cols, " values were given, but the model takes ", stage_.outline().width(0))};
  }
  void check(const StepBatch& batch, Index limit) const {
    check_rows(batch.x, limit);
    const Index wanted = batch.x.rows * loss_.target_elements(stage_.outline().width(stage_.outline().size()));
    if (static_cast<Index>(batch.targets.size()) != wanted)
      throw ShapeError{text("a batch of ", batch.x.rows, " rows has ", batch.targets.size(), " target elements; it takes ", wanted)};
  }

  /// Cuts the batch in micro-batches. The input is read where the caller holds it.
  void bind_input(std::vector<Slot>& slots, Matrix<const T> x) {
    Index first = 0;
    for (Slot& slot : slots) {
      slot.rows = std::min(micro_rows_, x.rows - first);
      T* const rows = const_cast<T*>(x.data) + first * x.cols;  // read only: no layer writes what it takes
      for (std::size_t boundary = 0;
           boundary == 0 || (boundary <= stage_.outline().layers.size() && stage_.outline().layers[boundary - 1].is_view); ++boundary)
        slot.activations[boundary] = rows;
      first += slot.rows;
    }
  }

  /// A message in flight: what started it, and its handle.
  struct Message {
    Instruction start;
    Work work;
  };
  Work& message(const Instruction& i) {
    Instruction start = i;
    if (i.op == Op::send_wait) start.op = Op::send_start;
    if (i.op == Op::receive_wait) start.op = Op::receive_start;
    for (Message& each : messages_)
      if (each.start == start) return each.work;
    throw PlanError{text(describe(i), ": nothing in the plan has started it")};
  }

  void run(const Instructions& list, const StepBatch& batch, const optim::StepInfo& info, bool training) {
    std::vector<Slot>& slots = training ? step_slots_ : evaluation_slots_;
    for (const Instruction& i : list) {
      const auto slot = [&]() -> Slot& { return slots[static_cast<std::size_t>(i.micro_batch)]; };
      C& group = *groups_[static_cast<std::size_t>(i.group)];
      switch (i.op) {
        case Op::count_start:
          global_rows_ = batch.global_rows;
          if (batch.global_rows > 0) break;
          global_rows_ = batch.x.rows;
          counting_ = group.all_reduce_async(std::span{&global_rows_, 1}, comm::Sum{});
          break;
        case Op::count_wait:
          counting_.wait();
          if (global_rows_ == 0) throw ConfigError{"a step was made without a single row on any rank; end the epoch where the data ends"};
          break;
        case Op::forward:
          stage_.forward(slot(), i.first, i.last);
          break;
        case Op::loss:
          take_loss(slot(), i.first, batch, training);
          break;
        case Op::backward_input:
          stage_.backward_input(slot(), i.first, i.last);
          break;
        case Op::backward_weight:
          stage_.backward_weight(slot(), i.first, i.last, i.accumulate);
          groups_.front()->progress();  // what is in flight moves while backward runs
          break;
        case Op::send_start:
          message(i) = group.send_async(std::as_const(*this).boundary(slot(), i), i.peer, tag(i));
          break;
        case Op::receive_start:
          message(i) = group.recv_async(boundary(slot(), i), i.peer, tag(i));
          break;
        case Op::send_wait:
        case Op::receive_wait:
          message(i).wait();
          break;
        case Op::reduce_start:
          reductions_[static_cast<std::size_t>(i.unit)] = group.all_reduce_async(stage_.gradients(i.unit), comm::Sum{});
          break;
        case Op::reduce_wait:
          reductions_[static_cast<std::size_t>(i.unit)].wait();
          break;
        case Op::broadcast:
          group.broadcast(stage_.values(i.unit), i.peer);
          break;
        case Op::totals_start:
          totalling_ = group.all_reduce_async(totals_, comm::Sum{});
          break;
        case Op::totals_wait:
          totalling_.wait();
          break;
        case Op::update:
          apply(i.unit, info);
          break;
      }
    }
  }

  void take_loss(Slot& slot, int boundary, const StepBatch& batch, bool training) {
    if (batch.targets.empty() || slot.rows == 0) return;  // a prediction, or an empty share: the gradients of no rows are zero
    const Index width = loss_.target_elements(stage_.outline().width(boundary));
    const Index first = (slot.activations.front() - const_cast<T*>(batch.x.data)) / batch.x.cols;
    const auto targets = batch.targets.subspan(static_cast<std::size_t>(first * width), static_cast<std::size_t>(slot.rows * width));
    const T scale = training ? static_cast<T>(1) / static_cast<T>(global_rows_) : T{};
    const LossSums sums = loss_(stage_.device(), Matrix<const T>{stage_.activation(slot, boundary)}, targets, scale,
                                training ? stage_.gradient(slot, boundary) : Matrix<T>{});
    totals_[0] += sums.loss;
    totals_[1] += sums.correct;
  }

  void apply(int unit, const optim::StepInfo& info) {
    update<optim::state_fields<Optimizer>>(stage_.device(), optimizer_, optim::constants(optimizer_, info), stage_.values(unit),
                                           std::span<const T>{stage_.gradients(unit)},
                                           optimizer_state_[static_cast<std::size_t>(unit)].span());
  }

  [[nodiscard]] std::span<T> boundary(const Slot& slot, const Instruction& i) const {
    return (i.tensor == parallel::Tensor::activation ? stage_.activation(slot, i.first) : stage_.gradient(slot, i.first)).values();
  }
  /// Tells the messages between two ranks apart that may be in flight at once.
  [[nodiscard]] int tag(const Instruction& i) const {
    return (i.micro_batch * (stage_.outline().size() + 1) + i.first) * 2 + (i.tensor == parallel::Tensor::gradient ? 1 : 0);
  }

  Plan plan_;
  Loss loss_;
  Optimizer optimizer_;
  nn::Stage<Model, D, T> stage_;
  Limits limits_;
  Index micro_rows_;  // of a full micro-batch
  std::vector<C> owned_;
  std::vector<C*> groups_;
  Buffer<T> memory_;  // of boundaries and what layers save
  std::vector<Buffer<T>> optimizer_state_;
  std::vector<Slot> step_slots_, evaluation_slots_;
  std::int64_t steps_ = 0;
  Index global_rows_ = 0;
  std::array<double, 2> totals_{};  // loss, correct
  // What is in flight comes last, so that it is let go of before the memory that it borrows.
  std::vector<Message> messages_;
  std::vector<Work> reductions_;
  Work counting_, totalling_;
};

}  // namespace pdp::parallel
