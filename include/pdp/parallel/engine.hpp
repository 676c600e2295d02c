#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/parallel/worker.hpp>

namespace pdp::parallel {

/// Carries out a plan: the one loop that all strategies share. It never sees the strategy. All memory is made here, from the plan; a step
/// allocates nothing. It borrows the communicator.
template <comm::Communicator C, nn::Block Model, class Loss, optim::Optimizer Optimizer, UniformPrecision P = Float32, class D = host::Cpu>
class Engine {
  using Worker = parallel::Worker<Model, Loss, Optimizer, P, D>;  // all that does not depend on the communicator

 public:
  using T = typename P::compute;
  using Target = typename Loss::Target;
  using StepBatch = Batch<T, Target>;

  Engine(C& world, Plan plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits)
      : plan_{std::move(plan)}, worker_{plan_, model, input, loss, optimizer, limits}, reductions_(plan_.units.size()) {
    owned_.reserve(plan_.groups.size());
    groups_.push_back(&world);
    for (const GroupSpec& group : plan_.groups) groups_.push_back(&owned_.emplace_back(world.split(group.color, group.key)));
    for (const Instructions* list : {&plan_.step, &plan_.evaluate})
      for (const Instruction& i : *list)
        if (i.op == Op::send_start || i.op == Op::receive_start) messages_.push_back({i, {}});
    run(plan_.setup);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] auto& stage() { return worker_.stage(); }
  [[nodiscard]] std::int64_t steps() const { return worker_.steps(); }
  /// The most rows of one evaluation.
  [[nodiscard]] Index evaluation_rows() const { return worker_.micro_rows(); }

  /// One step of training, on every rank at once. Gives the totals over all ranks, from before the update.
  Totals step(const StepBatch& batch, float lr_factor = 1) {
    worker_.begin(batch, true, lr_factor);
    own_rows_ = batch.x.rows;
    global_rows_ = batch.global_rows;
    run(plan_.step);
    return {worker_.sums[0], worker_.sums[1], static_cast<double>(global_rows_)};
  }

  /// Loss and accuracy of this rank's rows, without a change to anything. No message travels unless the plan says so.
  Totals evaluate(const StepBatch& batch) {
    worker_.begin(batch, false);
    run(plan_.evaluate);
    return {worker_.sums[0], worker_.sums[1], static_cast<double>(batch.x.rows)};
  }

  /// The model's output for this rank's rows. It lives until the next call.
  Matrix<const T> predict(Matrix<const T> x) {
    worker_.begin_prediction(x);
    run(plan_.evaluate);
    return worker_.output();
  }

 private:
  using Work = typename C::Work;

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

  void run(const Instructions& list) {
    for (const Instruction& i : list) {
      C& group = *groups_[static_cast<std::size_t>(i.group)];
      switch (i.op) {
        case Op::count_start:
          if (global_rows_ > 0) break;
          global_rows_ = own_rows_;
          counting_ = group.all_reduce_async(std::span{&global_rows_, 1}, comm::Sum{});
          break;
        case Op::count_wait:
          counting_.wait();
          if (global_rows_ == 0) throw ConfigError{"a step was made without a single row on any rank; end the epoch where the data ends"};
          break;
        case Op::forward:
        case Op::loss:
        case Op::backward_input:
        case Op::update:
          worker_.run(i, global_rows_);
          break;
        case Op::backward_weight:
          worker_.run(i, global_rows_);
          groups_.front()->progress();  // what is in flight moves while backward runs
          break;
        case Op::send_start:
          message(i) = group.send_async(std::span<const T>{worker_.boundary(i)}, i.peer, tag(i));
          break;
        case Op::receive_start:
          message(i) = group.recv_async(worker_.boundary(i), i.peer, tag(i));
          break;
        case Op::send_wait:
        case Op::receive_wait:
          message(i).wait();
          break;
        case Op::reduce_start:
          reductions_[static_cast<std::size_t>(i.unit)] = group.all_reduce_async(stage().gradients(i.unit), comm::Sum{});
          break;
        case Op::reduce_wait:
          reductions_[static_cast<std::size_t>(i.unit)].wait();
          break;
        case Op::broadcast:
          group.broadcast(stage().values(i.unit), i.peer);
          break;
        case Op::totals_start:
          totalling_ = group.all_reduce_async(worker_.sums, comm::Sum{});
          break;
        case Op::totals_wait:
          totalling_.wait();
          break;
      }
    }
  }

  /// Tells the messages between two ranks apart that may be in flight at once.
  [[nodiscard]] int tag(const Instruction& i) {
    return (i.micro_batch * (stage().outline().size() + 1) + i.first) * 2 + (i.tensor == parallel::Tensor::gradient ? 1 : 0);
  }

  Plan plan_;
  Worker worker_;
  std::vector<C> owned_;
  std::vector<C*> groups_;
  Index own_rows_ = 0, global_rows_ = 0;
  // What is in flight comes last, so that it is let go of before the memory that it borrows.
  std::vector<Message> messages_;
  std::vector<Work> reductions_;
  Work counting_, totalling_;
};

}  // namespace pdp::parallel
