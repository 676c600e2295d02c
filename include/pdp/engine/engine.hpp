#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/after_device.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/engine/group_calls.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/host_calls.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/non_finite_gradient.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/engine/recorded_splits.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/engine/unit_calls.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/engine/worker.hpp>
#include <pdp/plan/common_memory.hpp>

namespace pdp::engine {

/// Carries out a plan: the one loop that all strategies share. It never sees the strategy. All memory is made here, from the plan; a step
/// allocates nothing. It borrows the communicator.
template <comm::Communicator C, nn::Block Model, class Loss, optim::Optimizer Optimizer, SupportedPrecision P = Float32, class D = cpu::Cpu>
class Engine {
  static_assert(comm::Alone<C> || D::uses_host_memory != comm::HasDeviceBuffers<C>,
                "pdp: the model computes in memory of another kind than the communicator's calls take: cuda::Device goes with comm::Nccl, "
                "comm::CudaThread or comm::Self, and cpu::Cpu with all others");
  using Worker = engine::Worker<Model, Loss, Optimizer, P, D>;  // all that does not depend on the communicator

 public:
  using T = typename P::compute;
  using Gradient = typename Worker::Gradient;
  using Input = typename Worker::Input;
  using Target = typename Loss::Target;
  using StepBatch = typename Worker::StepBatch;
  using Work = typename C::Work;
  using Reduced = typename P::reduce;
  static constexpr bool has_masters = Worker::Stage::has_masters;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

  /// `policy`: one that needs the norm of the gradient needs a plan that takes it (plan_for).
  Engine(C& world, plan::Plan plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits,
         const plan::GradientPolicy& policy = {}, D device = {})
      : plan_{(check_device(world, device), adapted(world, std::move(plan), world.rank()))},
        groups_{world, plan_},
        lanes_{groups_, plan_, device},
        memory_{groups_, device, plan_, nn::outline(model, input)},
        worker_{plan_, model, input, loss, optimizer, limits, device, memory_.lent(), memory_.lent_scratch()},
        takes_loss_{std::ranges::any_of(plan_.step, [](const plan::Instruction& i) { return i.op == plan::Op::loss; })},
        judges_{std::ranges::any_of(plan_.evaluate, [](const plan::Instruction& i) { return i.op == plan::Op::loss; })},
        counts_{plan_.tensor.index == 0},
        units_{groups_, plan_, memory_, worker_},
        setup_{program_of(plan_.setup, groups_)},
        step_{program_of(plan_.step, groups_)},
        evaluate_{program_of(plan_.evaluate, groups_)},
        messages_(std::max({setup_.message_count, step_.message_count, evaluate_.message_count})),
        in_flight_{groups_.world(), worker_.device()} {
    std::vector<bool> counts;
    for (const plan::Unit& unit : plan_.units)
      counts.push_back(unit.sharding != plan::Sharding::none || unit.group < 0 || groups_[unit.group].rank() == 0);
    worker_.norm = {worker_.stage(), plan_, policy, counts};
    if constexpr (comm::RecordsCalls<C>)
      if (world.size() > 1) agree_on_records();
    const AfterDevice after{world, worker_.device()};
    in_flight_.begin(setup_.has_calls);
    run(setup_);
    in_flight_.settle();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Throws ConfigError where a world on GPUs has another one than the model.
  static void check_device(const C& world, const D& device) {
    if constexpr (std::same_as<D, cpu::Cpu>) cpu::check(device);
    if constexpr (comm::HasDeviceBuffers<C>)
      if (world.device() != device.index())
        throw ConfigError{text("rank ", world.rank(), ": the communicator uses GPU ", world.device(), ", but the model is on GPU ",
                               device.index(), "; make both for the same one")};
  }
  /// The plan that it carries out: the one that it was given, unless the ranks see each other's memory.
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  /// A rank's plan as its engine carries it out.
  static plan::Plan adapted(const C& world, plan::Plan plan, int rank) {
    if constexpr (sees_memory)
      if (world.shares_memory()) return plan::in_common_memory(std::move(plan), {rank, world.size()});
    return plan;
  }
  [[nodiscard]] auto& stage() { return worker_.stage(); }
  [[nodiscard]] std::int64_t steps() const { return worker_.steps(); }
  /// The most rows of one evaluation.
  [[nodiscard]] Index evaluation_rows() const { return worker_.micro_rows(); }

  /// Whether from now on each step records when it carries out each of its instructions. Such a step begins with a barrier, so that the
  /// ranks' times have one origin. On a device it waits for each instruction, so such a step takes longer. All ranks make this call.
  void record(bool on) { times_.resize(on ? plan_.step.size() : 0); }
  /// The times of the last step that was recorded, while recording is on.
  [[nodiscard]] std::span<const Timed> times() const { return times_; }

  /// One step of training, on every rank at once. Gives the totals over all ranks, from before the update.
  Totals step(const StepBatch& batch, float lr_factor = 1) {
    start(batch, lr_factor);
    return finish();
  }
  /// Its two halves: start() may return before the device is through, and the batch is free to change then, unless it lies on the device;
  /// finish() gives the totals of the step that was started last.
  void start(const StepBatch& batch, float lr_factor = 1) {
    begin_call(Purpose::training);
    worker_.check(batch, true);
    const AfterDevice after{groups_.world(), worker_.device()};
    if (!times_.empty()) {
      groups_.world().barrier();
      origin_ = Clock::now();
    }
    own_rows_ = takes_loss_ && counts_ ? batch.x.rows : 0;
    global_rows_ = batch.global_rows;
    counted_.clear();
    if constexpr (!D::uses_host_memory)
      if (global_rows_ == 0) count_rows(batch.x.rows);  // before the rest, as the host cannot look at a number in a list that is replayed
    const bool together = is_recorded_together(batch.x.rows);
    wait_for_room(batch, together);
    in_flight_.begin(step_.has_calls);
    worker_.begin(batch, true, {.lr_factor = lr_factor, .global_rows = global_rows_});
    counts_rows_ = global_rows_ == 0;
    if (!times_.empty())
      run(step_, times_.data());
    else if (together)
      carry_out_together();
    else
      carry_out_all(0, batch.x.rows, step_);
  }
  /// A step that this rank could not start, though the others may have: it takes no messages of theirs in its next one.
  void miss_step() { begin_call(Purpose::training); }
  Totals finish() {
    const StepNumbers found = numbers();
    if (found.skips && worker_.norm.stops()) throw_non_finite_gradient(groups_.world(), stage(), worker_.norm, steps() - 1);
    return totals_of(found, global_rows_);
  }

  /// The totals of the step that was started last, on their way to the host: so another step may be started before they are asked for.
  /// Where a gradient that is not finite ends the training, finish() comes before the next step.
  class Pending {
    friend Engine;
    Pending(DeviceRead<D, StepNumbers> numbers, Index rows, std::int64_t steps)
        : numbers_{std::move(numbers)}, rows_{rows}, steps_{steps} {}
    DeviceRead<D, StepNumbers> numbers_;
    Index rows_;
    std::int64_t steps_;  // that were started so far
  };
  [[nodiscard]] Pending pending() { return {worker_.read_numbers(), global_rows_, steps()}; }
  Totals finish(const Pending& of) {
    in_flight_.wait_until([&] { return of.numbers_.is_there(); });
    if (of.steps_ == steps()) in_flight_.settle();  // nothing is in flight any more
    return totals_of(of.numbers_.get(), of.rows_);
  }

  /// Loss and accuracy of the rows whose loss this rank takes, of a tensor-parallel group its first rank alone, without a change to
  /// anything. No message travels unless the plan says so.
  Totals evaluate(const StepBatch& batch) {
    if (evaluate_.has_calls) begin_call(Purpose::evaluation);
    worker_.check(batch, false);
    in_flight_.settle();
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin(batch, false);
    in_flight_.begin(evaluate_.has_calls);
    carry_out_all(1, batch.x.rows, evaluate_);
    const LossSums found = numbers().sums;
    return {found.loss, found.correct, judges_ && counts_ ? static_cast<double>(batch.x.rows) : 0};
  }

  /// The model's output for this rank's rows. It lives until the next call.
  Matrix<const Input> predict(Matrix<const Input> x) {
    if (evaluate_.has_calls) begin_call(Purpose::evaluation);
    in_flight_.settle();
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin_prediction(x);
    in_flight_.begin(evaluate_.has_calls);
    carry_out_all(2, x.rows, evaluate_);
    in_flight_.settle();
    if (!stage().outline().output_is_sharded) return worker_.output();
    C& group = groups_[plan_.tensor_group];
    return worker_.join_output(
        [&](std::span<const T> own, std::span<T> all) { start_all_gather(group, worker_.device(), own, all).wait(); });
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// The kinds of calls whose messages have tags of their own.
  enum class Purpose : unsigned char { training, evaluation };

  void begin_call(Purpose purpose) {
    purpose_ = purpose;
    ++calls_[as_size(purpose)];
  }

  /// As a device may have recorded it, where no other rank has a part in it. `kind`: which list, for which purpose.
  void carry_out_all(Index kind, Index rows, const Program& program) {
    if (comm::HasDeviceBuffers<C> && program.has_calls) return run(program);
    const auto place = [](const void* memory) { return Index{reinterpret_cast<std::intptr_t>(memory)}; };
    const auto [x, targets] = worker_.where();
    replay(worker_.device(), recordings_, std::array<Index, 4>{kind, rows, place(x), place(targets)}, [&] { run(program); });
  }

  /// A step may be started while those before it are in flight, in which the device waits for other ranks. Whatever waits for the device
  /// then is waited for here, under the deadline: room for the batch on its way; all of it, where a step is no record yet, for which CUDA
  /// may want the device idle, or is never one, as a device takes so many launches only; and now and then, as it takes so many records
  /// only.
  void wait_for_room(const StepBatch& batch, bool together) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      if (!step_.has_calls) return;
      bool is_recorded = false;
      if constexpr (comm::RecordsCalls<C>) is_recorded = together && recordings_together_.is_ready(split());
      if (!is_recorded || ++ahead_ >= most_ahead) {
        in_flight_.settle();
        ahead_ = 0;
      }
      in_flight_.wait_until([&] { return worker_.begins_at_once(batch) || worker_.device().is_idle(); });
    }
  }

  /// Whether a step of so many rows is recorded by all ranks, as each has a part in it.
  bool is_recorded_together(Index rows) {
    if (!records_together_ || !step_.has_calls || !times_.empty()) return false;
    return splits_.admit(split(), rows, groups_.world().rank());
  }
  /// How the rows of a step are split over ranks, as all of them know it.
  [[nodiscard]] std::span<const Index> split() const {
    return counted_.empty() ? std::span{&global_rows_, 1} : std::span<const Index>{counted_};
  }
  void carry_out_together() {
    if constexpr (comm::RecordsCalls<C>) {
      C& world = groups_.world();
      world.progress();  // a record asks nobody whether the world has ended
      try {
        replay(worker_.device(), recordings_together_, split(), [&] { run(step_); });
      } catch (const CommunicationError&) {
        throw;
      } catch (const std::exception& error) {  // the other ranks have their record, which goes with no later one of this rank's
        world.abort(text("rank ", world.rank(), " could not carry out a step that all ranks record: ", error.what()));
        throw;
      }
    }
  }
  /// Whether all ranks record their steps. Messages that wait on the device for each other must run there side by side, which CUDA promises
  /// of the branches of a graph even less than of streams: so a plan that has such is not recorded. Where all record, nothing in a record
  /// may depend on one rank alone, such as where its batch lies.
  void agree_on_records() {
    Index records = worker_.device().records() && lanes_.empty() ? 1 : 0;
    host_calls().all_reduce(std::span{&records, 1}, comm::Min{});
    records_together_ = records == 1;
    if (records_together_) worker_.copy_batches();
  }

  /// `times`: where to write when each instruction began and ended; may be null.
  void run(const Program& program, Timed* times = nullptr) {
    for (std::size_t at = 0; at < program.list->size();) {
      const std::size_t count = program.joined_count[at];
      if (times != nullptr) times[at].begin = since_origin();
      carry_out(program, at);
      at += count;
      if (times != nullptr) {
        in_flight_.settle_so_far();
        times[at - count].end = since_origin();
      }
      for (std::size_t other = 1; times != nullptr && other < count; ++other)  // they are part of the first
        times[at - other] = {times[at - count].end, times[at - count].end};
    }
  }
  [[nodiscard]] double since_origin() const { return std::chrono::duration<double>(Clock::now() - origin_).count(); }

  void carry_out(const Program& program, std::size_t at) {
    const plan::Instruction& i = (*program.list)[at];
    C& group = groups_[i.group];
    if constexpr (comm::HasDeviceBuffers<C>) worker_.device().begin_all();  // or a call would come before what it is to come after
    switch (i.op) {
      case plan::Op::count_start:
        if (!counts_rows_) break;
        global_rows_ = own_rows_;
        counting_ = group.all_reduce_async(std::span{&global_rows_, 1}, comm::Sum{});
        break;
      case plan::Op::count_wait:
        if (!counts_rows_) break;
        counting_.wait();
        check_global_rows();
        worker_.set_global_rows(global_rows_);
        break;
      case plan::Op::loss:
        worker_.run(i);
        break;
      case plan::Op::forward:
      case plan::Op::backward_input:
      case plan::Op::backward_weight:
        if (const std::size_t count = program.joined_count[at]; count > 1) {
          worker_.run_joined(i, as_int(count), [this] { groups_.world().progress(); });
        } else {
          compute(i, program.list == &plan_.step);
        }
        break;
      case plan::Op::update:
        units_.update(i.unit);
        break;
      case plan::Op::send_start:
      case plan::Op::receive_start:
        messages_[program.message_of[at]] = message(i);
        break;
      case plan::Op::sum_start:
        messages_[program.message_of[at]] = start_all_reduce(group, worker_.boundary(i));
        break;
      case plan::Op::send_wait:
      case plan::Op::receive_wait:
      case plan::Op::sum_wait:
        wait(messages_[program.message_of[at]]);
        break;
      case plan::Op::share_loss:
        worker_.run(i);
        wait(start_all_gather(group, worker_.device(), std::span<const Gradient>{worker_.own_parts()}, worker_.all_parts()));
        break;
      case plan::Op::reduce_start:
        worker_.watch(i.unit);
        units_.start_reduction(group, i);
        break;
      case plan::Op::reduce_wait:
        wait(units_.reduction_work(i));
        units_.end_reduction(i);
        break;
      case plan::Op::gather_start:
        units_.start_gathering(group, i);
        break;
      case plan::Op::gather_wait:
        wait(units_.gathering_work(i));
        units_.end_gathering(i);
        break;
      case plan::Op::broadcast:
        wait(group.broadcast_async(stage().values(i.unit), i.peer));
        if constexpr (has_masters)
          if (plan_.units[as_size(i.unit)].slices == 1) wait(group.broadcast_async(stage().own_masters(i.unit), i.peer));
        break;
      case plan::Op::norm_start:
        worker_.add_squares();
        norming_ = start_all_reduce(group, worker_.square());
        break;
      case plan::Op::norm_wait:
        wait(norming_);
        worker_.judge();
        break;
      case plan::Op::totals_start:
        totalling_ = start_all_reduce(group, worker_.sums());
        break;
      case plan::Op::totals_wait:
        wait(totalling_);
        break;
    }
  }

  Work message(const plan::Instruction& i) {
    const auto [group, peer] = lanes_.way(i);
    if (i.op == plan::Op::receive_start) return group.recv_async(worker_.boundary(i), peer, tag(i));
    return group.send_async(std::span<const T>{worker_.boundary(i)}, peer, tag(i));
  }
  /// Until a call is complete, or so that what the device is given from now on comes after it.
  void wait(Work&& work) { wait(work); }
  void wait(Work& work) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      if (work.pending()) work.wait_on(worker_.device().stream());
    } else {
      work.wait();
    }
  }

  [[nodiscard]] StepNumbers numbers() {
    in_flight_.settle();
    return worker_.numbers();
  }
  static Totals totals_of(const StepNumbers& found, Index rows) {
    return {found.sums.loss, found.sums.correct, static_cast<double>(rows), found.norm, found.skips, found.loss_scale};
  }

  void check_global_rows() const {
    if (global_rows_ == 0) throw ConfigError{"a step was made without a single row on any rank; end the epoch where the data ends"};
  }
  /// Asks all ranks how many rows they have, and how many of them they count.
  void count_rows(Index rows) {
    in_flight_.settle();
    const std::array<Index, 2> own{rows, own_rows_};
    counted_.resize(own.size() * as_size(groups_.world().size()));
    host_calls().all_gather(std::span<const Index>{own}, std::span{counted_});
    for (std::size_t at = 1; at < counted_.size(); at += own.size()) global_rows_ += counted_[at];
    check_global_rows();
  }
  [[nodiscard]] auto host_calls() { return HostCalls{groups_.world(), worker_.device()}; }

  /// Layer by layer: what is in flight moves in between. Of an evaluation nothing is, and ranks may have gone.
  void compute(const plan::Instruction& i, bool in_a_step) {
    for (int done = 0; done < i.last - i.first; ++done) {
      const int layer = i.op == plan::Op::forward ? i.first + done : i.last - 1 - done;
      worker_.run(plan::compute(i.op, i.micro_batch, layer, layer + 1, i.accumulate));
      if (in_a_step) groups_.world().progress();
    }
  }

  /// Tells apart the messages between two ranks that may be in flight at once. It also holds the number of the call, as far as tags that
  /// every backend takes (32767) have room: the messages of ranks that do not make the same calls never meet. Calls of the two purposes are
  /// counted apart, since a rank that exchanges messages in steps may exchange none in evaluations, of which it may make fewer then.
  [[nodiscard]] int tag(const plan::Instruction& i) {
    const int layers = stage().outline().size() + 1;
    const std::int64_t kinds = std::int64_t{2} * plan_.micro_batches * layers;
    const std::int64_t room = std::max<std::int64_t>(1, 32767 / kinds), count = calls_[as_size(purpose_)];
    // With room for two numbers, they tell a step from the next one.
    const std::int64_t call = (room > 2 ? 2 * count + static_cast<std::int64_t>(purpose_) : count) % room;
    const std::int64_t kind = (std::int64_t{i.micro_batch} * layers + i.first) * 2 + (i.tensor == plan::Tensor::gradient ? 1 : 0);
    return as_int(call * kinds + kind);
  }

  plan::Plan plan_;
  Groups<C> groups_;
  Lanes<C> lanes_;
  UnitMemory<C, D, T, Reduced> memory_;
  Worker worker_;
  bool takes_loss_, judges_, counts_;  // in a step, in an evaluation: each row counts on the rank that takes its loss, and on the first
                                       // where a group takes it together
  UnitCalls<C, Worker, Reduced> units_;
  Purpose purpose_ = Purpose::training;   // of the last call
  std::array<std::int64_t, 2> calls_{};   // by purpose, failed ones too
  Index own_rows_ = 0, global_rows_ = 0;  // of a step: those that this rank counts, and of all ranks
  static constexpr int most_ahead = 16;
  int ahead_ = 0;             // steps that were started since the device was idle for certain, and records of all ranks
  bool counts_rows_ = false;  // in this step, as the caller does not know how many there are on all ranks
  typename D::Recordings recordings_;
  typename D::Recordings recordings_together_;  // of steps, by their split
  RecordedSplits splits_;
  bool records_together_ = false;
  std::vector<Index> counted_;  // of each rank, the rows and those that it counts, where the caller does not know how many there are
  Program setup_, step_, evaluate_;
  std::vector<Timed> times_;  // of the instructions of a step, where they are recorded
  Clock::time_point origin_{};
  // What is in flight comes last, as in units_, so that it is let go of before the memory that it borrows.
  std::vector<Work> messages_;
  Work counting_, norming_, totalling_;
  InFlight<C, D> in_flight_;
};

}  // namespace pdp::engine
