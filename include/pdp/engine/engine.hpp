#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/adapted_plan.hpp>
#include <pdp/engine/averages.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/engine/check_device.hpp>
#include <pdp/engine/executor.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/engine/graph_cache.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/loss_check.hpp>
#include <pdp/engine/message_tags.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/engine/row_count.hpp>
#include <pdp/engine/step_trace.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/engine/training_state.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/engine/worker.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Executes a plan, independent of the strategy that made it. The constructor allocates all memory that the plan needs, so a step allocates
/// none for tensors. Borrows the communicator. `Types`: those of the model's layers (see nn::Stage).
template <comm::Communicator C, class Types, class Loss, optim::Optimizer Optimizer, SupportedPrecision P = Float32, class D = cpu::Cpu>
class Engine {
  static_assert(comm::Alone<C> || D::uses_host_memory != comm::HasDeviceBuffers<C>,
                "pdp: the device and the communicator use different kinds of memory: cuda::Device goes with comm::Nccl, "
                "comm::CudaThread or comm::Self, and cpu::Cpu with all others");
  using Worker = engine::Worker<Types, Loss, Optimizer, P, D>;  // everything that does not depend on the communicator

 public:
  using T = typename P::compute;
  using Gradient = typename Worker::Gradient;
  using Sample = typename Worker::Sample;
  using Output = typename Worker::Output;
  using Target = typename Worker::Target;
  using StepBatch = typename Worker::StepBatch;
  using Reduced = typename P::reduce;
  static constexpr bool has_masters = Worker::Stage::has_masters;

  /// Every rank of the world makes this call. Throws PlanError if the policy needs the norm of the gradient and the plan does not take it
  /// (see plan_for).
  template <nn::Block Model>
  requires(std::same_as<nn::LeafTypes<Model>, Types>)
      Engine(C& world, const plan::Plan& plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits,
             const plan::GradientPolicy& policy = {}, D device = {})
      : plan_{(engine::check_device(world, device), adapted(world, plan, world.rank()))},
        groups_{world, plan_},
        channels_{groups_, plan_, device},
        memory_{groups_, device, plan_, nn::outline(model, input)},
        worker_{plan_, model, input, loss, optimizer, limits, device, memory_.lent()},
        takes_loss_{computes_loss(plan_.step)},
        evaluates_loss_{computes_loss(plan_.evaluate)},
        counts_{plan_.tensor.index == 0},
        setup_{program_of(plan_.setup, groups_.sizes())},
        step_{program_of(plan_.step, groups_.sizes())},
        evaluate_{program_of(plan_.evaluate, groups_.sizes())},
        graphs_{groups_.world(), worker_.device(), in_flight_},
        executor_{plan_,   groups_, channels_,  memory_,
                  worker_, rows_,   in_flight_, std::max({setup_.message_count, step_.message_count, evaluate_.message_count})},
        in_flight_{groups_.world(), worker_.device()},
        loss_check_{policy, groups_.world(), plan_, worker_, in_flight_} {
    worker_.norm = {worker_.stage(), plan_, policy, groups_.counted_units(plan_), worker_.frozen()};
    if constexpr (comm::RecordsCalls<C>)
      if (world.size() > 1) agree_on_records();
    const AfterDevice after{world, worker_.device()};
    in_flight_.begin(setup_.has_calls);
    executor_.run(setup_);
    in_flight_.synchronise();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Returns the plan that the engine executes: the plan that it was given, or in_common_memory() of it if the ranks see each other's
  /// memory.
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  /// Returns a rank's plan as its engine executes it.
  static plan::Plan adapted(const C& world, const plan::Plan& plan, int rank) { return adapted_plan<T, Reduced>(world, plan, rank); }
  /// Returns the plans of all ranks as their engines execute them.
  static std::vector<plan::Plan> adapted(const C& world, std::vector<plan::Plan> all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = adapted(world, all[rank], as_int(rank));
    return all;
  }
  [[nodiscard]] auto& stage() { return worker_.stage(); }
  [[nodiscard]] std::int64_t steps() const { return worker_.steps(); }
  [[nodiscard]] const Optimizer& optimizer() const { return worker_.optimizer(); }
  /// Returns the state of the training, which checkpoints save and restore.
  [[nodiscard]] TrainingState<C, D, T> state() {
    return {plan_,        groups_,        in_flight_, averages_, worker_.stage(), worker_.updates().state(), &optim::state_name<Optimizer>,
            worker_.norm, worker_.steps()};
  }
  /// Puts the averages of optim::Averaged in place of the parameters, or the parameters back. Every rank makes the first call.
  void use_averages() {
    in_flight_.synchronise();
    const bool are_known = worker_.norm.history(worker_.device()).skipped < steps();
    const AfterDevice after{groups_.world(), worker_.device()};
    averages_.use(groups_, plan_, worker_.stage(), are_known, [this](int unit) { worker_.put_averages(unit); });
  }
  void use_parameters() { averages_.leave(worker_.stage()); }
  /// Returns the maximum number of rows of one evaluation.
  [[nodiscard]] Index evaluation_rows() const { return worker_.micro_rows(); }
  /// Turns tracing of steps on or off. All ranks make this call. A traced step records the times of its instructions. It begins with a
  /// barrier, so that the times of all ranks have one origin. On a device it waits for each instruction, so it takes longer.
  void trace(bool on) { trace_.trace(on, plan_.step.size()); }
  /// Returns the times of the last traced step.
  [[nodiscard]] std::span<const Timed> times() const { return trace_.times(); }

  /// Runs one step of training. Every rank makes this call. Returns the totals over all ranks, with the loss from before the update. Throws
  /// ShapeError or LabelError if the batch is not valid. `lr_factor`: factor of the optimizer's learning rate. `report`: for the totals.
  Totals step(const StepBatch& batch, float lr_factor = 1, RankReport report = {}) {
    start(batch, lr_factor, report);
    return finish();
  }
  /// start() and finish() are the two halves of a step. start() may return before the device has finished. After that the caller may change
  /// the batch, unless it lies on the device. finish() returns the totals of the last step that was started. It throws NonFiniteGradient
  /// (NonFinite::stop) or NonFiniteLoss (NonFinite::stop_on_loss) if the step ends the training.
  void start(const StepBatch& batch, float lr_factor = 1, RankReport report = {}) {
    averages_.check_unused("a step");
    clock_.start();
    executor_.begin_call(Purpose::training);
    worker_.check(batch, true);
    const AfterDevice after{groups_.world(), worker_.device()};
    if (trace_.is_on()) {
      groups_.world().barrier();
      trace_.begin();
    }
    rows_.begin(worker_.own_rows(batch, takes_loss_ && counts_), batch.global_rows, batch.share_rows, groups_.world().size());
    if constexpr (!D::uses_host_memory || Worker::numbers_rows) {
      if (!rows_.is_known()) {  // first, as the host cannot read a number in the middle of a replay
        in_flight_.synchronise();
        rows_.ask(host_calls(), groups_.world().size(), plan_.share.index);
      }
    }
    if constexpr (Worker::sums_over_batch) worker_.check_batch_of(rows_.global());
    const bool together = step_.has_calls && !trace_.is_on() && graphs_.admits(rows_.split(), batch.x.rows);
    if constexpr (comm::HasDeviceBuffers<C>)
      if (step_.has_calls) graphs_.wait_for_room(rows_.split(), together, [&] { return worker_.begins_at_once(batch); });
    in_flight_.begin(step_.has_calls);
    worker_.begin(batch, true, {lr_factor, rows_.global(), report, rows_.first_row(plan_.share.index, plan_.share.count)});
    executor_.begin_step(!rows_.is_known());
    if (trace_.is_on())
      executor_.run(step_, trace_);
    else if (together)
      graphs_.replay_together(rows_.split(), [&] { executor_.run(step_); });
    else
      carry_out(List::step, batch.x.rows, step_);
    loss_check_.started();
  }
  /// Counts a step that this rank could not start, though other ranks may have started it. So their messages of that step do not match this
  /// rank's next step.
  void miss_step() { executor_.begin_call(Purpose::training); }
  Totals finish() {
    const StepNumbers found = numbers();
    if (found.skips && worker_.norm.stops()) throw_non_finite_gradient(groups_.world(), worker_.device(), worker_.norm, steps() - 1);
    loss_check_.check(found, steps() - 1);
    return totals_of(found, rows_.global(), clock_.seconds());
  }

  /// Returns the totals of the last started step, on their way to the host. Another step may be started before they are read. Not for
  /// NonFinite::stop: it needs finish() without arguments before the next step.
  using Pending = PendingTotals<D>;
  [[nodiscard]] Pending pending() { return {worker_.read_numbers(), rows_.global(), steps()}; }
  /// Returns the totals of an earlier step. batch() returns its batch, in host memory. It is called if the loss ends the training.
  template <class F = NoBatch>
  Totals finish(const Pending& of, const F& batch = {}) {
    in_flight_.wait_until([&] { return of.numbers.is_there(); });
    if (of.steps == steps()) in_flight_.synchronise();  // it was the last step, so nothing else is in flight
    loss_check_.check(of.numbers.get(), of.steps - 1, batch);
    return totals_of(of.numbers.get(), of.rows);
  }

  /// Returns the totals of the rows for which this rank computes the loss. In a tensor-parallel group, only the first rank counts them.
  /// Changes no parameters. Sends messages only if the plan says so.
  Totals evaluate(const StepBatch& batch) {
    if (evaluate_.has_calls) executor_.begin_call(Purpose::evaluation);
    worker_.check(batch, false);
    in_flight_.synchronise();
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin(batch, false);
    in_flight_.begin(evaluate_.has_calls);
    carry_out(List::evaluation, batch.x.rows, evaluate_);
    return totals_of({.sums = numbers().sums}, worker_.own_rows(batch, evaluates_loss_ && counts_).adds);
  }
  /// Returns the model's output for the rows of the last evaluate(): all of them on the ranks that count them, none on the others. The
  /// ranks of a tensor-parallel group make this call together. It is valid until the next call.
  Matrix<const Output> evaluated_output() {
    const auto output = evaluates_loss_ ? whole_output() : Matrix<const Output>{};
    return counts_ ? output : Matrix<const Output>{};
  }

  /// Returns the model's output for this rank's rows: [rows, in] -> [rows, out]. It is valid until the next call.
  Matrix<const Output> predict(Matrix<const Sample> x) {
    if (evaluate_.has_calls) executor_.begin_call(Purpose::evaluation);
    in_flight_.synchronise();
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin_prediction(x);
    in_flight_.begin(evaluate_.has_calls);
    carry_out(List::prediction, x.rows, evaluate_);
    in_flight_.synchronise();
    return whole_output();
  }

 private:
  /// Returns the model's output for the last rows, with the columns of all ranks.
  Matrix<const Output> whole_output() {
    if (!stage().outline().output_is_sharded) return worker_.output();
    C& group = groups_[plan_.tensor_group];
    return worker_.join_output(
        [&](std::span<const T> own, std::span<T> all) { start_all_gather(group, worker_.device(), own, all).wait(); });
  }

  /// The lists that a device records.
  enum class List : std::uint8_t { step, evaluation, prediction };

  /// Runs a list. A device may replay a recording of it if no other rank takes part.
  void carry_out(List list, Index rows, const Program& program) {
    if (comm::HasDeviceBuffers<C> && program.has_calls) return executor_.run(program);
    const auto place = [](const void* memory) { return Index{reinterpret_cast<std::intptr_t>(memory)}; };
    const auto [x, targets] = worker_.where();
    graphs_.replay_alone({as_index(list), rows, place(x), place(targets)}, [&] { executor_.run(program); });
  }
  /// Decides whether all ranks record their steps. Messages that wait for each other on the device must run concurrently. CUDA guarantees
  /// this even less for branches of a graph than for streams, so a plan with such messages is not recorded. If all ranks record, a
  /// recording must not depend on anything that one rank alone knows, such as the address of its batch.
  void agree_on_records() {
    Index records = worker_.device().records() && channels_.empty() ? 1 : 0;
    host_calls().all_reduce(std::span{&records, 1}, comm::Min{});
    if (records != 1) return;
    graphs_.record_together();
    worker_.copy_batches();
  }
  [[nodiscard]] auto host_calls() { return HostCalls{groups_.world(), worker_.device()}; }

  [[nodiscard]] StepNumbers numbers() {
    in_flight_.synchronise();
    return worker_.numbers();
  }

  plan::Plan plan_;
  Groups<C> groups_;
  Channels<C> channels_;
  UnitMemory<C, D, T, Reduced> memory_;
  Worker worker_;
  bool takes_loss_, evaluates_loss_, counts_;  // this rank computes the loss in steps; in evaluations; counts its rows
  RowCount<C> rows_;                           // of a step
  Program setup_, step_, evaluate_;
  StepClock clock_;
  StepTrace trace_;
  GraphCache<C, D> graphs_;
  Averages<D, T> averages_;
  // Work in flight comes last, so that it is destroyed before the memory that it borrows.
  Executor<C, Worker, Reduced> executor_;
  InFlight<C, D> in_flight_;
  LossCheck<C, Worker> loss_check_;
};
template <comm::Communicator C, nn::Block Model, class Loss, optim::Optimizer Optimizer, class D = cpu::Cpu>
Engine(C&, const plan::Plan&, const Model&, const Shape&, Loss, Optimizer, Limits, const plan::GradientPolicy& = {}, D = {})
    -> Engine<C, nn::LeafTypes<Model>, Loss, Optimizer, Float32, D>;

}  // namespace pdp::engine
