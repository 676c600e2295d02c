#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/parallel/after_device.hpp>
#include <pdp/parallel/common_memory.hpp>
#include <pdp/parallel/groups.hpp>
#include <pdp/parallel/host_calls.hpp>
#include <pdp/parallel/lanes.hpp>
#include <pdp/parallel/recorded_splits.hpp>
#include <pdp/parallel/rounded.hpp>
#include <pdp/parallel/timeline.hpp>
#include <pdp/parallel/unit_memory.hpp>
#include <pdp/parallel/worker.hpp>

namespace pdp::parallel {

/// Carries out a plan: the one loop that all strategies share. It never sees the strategy. All memory is made here, from the plan; a step
/// allocates nothing. It borrows the communicator.
template <comm::Communicator C, nn::Block Model, class Loss, optim::Optimizer Optimizer, SupportedPrecision P = Float32,
          class D = host::Cpu>
class Engine {
  static_assert(comm::Alone<C> || D::uses_host_memory != comm::HasDeviceBuffers<C>,
                "pdp: the model computes in memory of another kind than the communicator's calls take: cuda::Device goes with comm::Nccl, "
                "comm::CudaThread or comm::Self, and host::Cpu with all others");
  using Worker = parallel::Worker<Model, Loss, Optimizer, P, D>;  // all that does not depend on the communicator

 public:
  using T = typename P::compute;
  using Gradient = typename Worker::Gradient;
  using Input = typename Worker::Input;
  using Target = typename Loss::Target;
  using StepBatch = typename Worker::StepBatch;
  using Work = typename C::Work;
  using Reduced = typename P::reduce;
  static constexpr bool rounds = !std::same_as<Reduced, Gradient>;  // gradients on their way
  static constexpr bool has_masters = Worker::Stage::has_masters;
  static constexpr bool sees_memory = may_see_memory<C, T, Reduced>;

  /// `policy`: one that needs the norm of the gradient needs a plan that takes it (plan_for).
  Engine(C& world, Plan plan, const Model& model, const Shape& input, Loss loss, Optimizer optimizer, Limits limits,
         const GradientPolicy& policy = {}, D device = {})
      : plan_{(check_device(world, device), adapted(world, std::move(plan), world.rank()))},
        groups_{world, plan_},
        lanes_{groups_, plan_, device},
        memory_{groups_, device, plan_, nn::outline(model, input)},
        worker_{plan_, model, input, loss, optimizer, limits, device, memory_.lent(), memory_.lent_scratch()},
        takes_loss_{std::ranges::any_of(plan_.step, [](const Instruction& i) { return i.op == Op::loss; })},
        judges_{std::ranges::any_of(plan_.evaluate, [](const Instruction& i) { return i.op == Op::loss; })},
        counts_{plan_.tensor.index == 0},
        takes_norm_{std::ranges::any_of(plan_.step, [](const Instruction& i) { return i.op == Op::norm_start; })},
        marks_(plan_.units.size()),
        reductions_(plan_.units.size()),
        gathers_(plan_.units.size()) {
    if constexpr (rounds) rounded_ = {stage(), plan_, groups_};
    setup_ = program(plan_.setup);
    std::vector<bool> counts;
    for (const Unit& unit : plan_.units)
      counts.push_back(unit.sharding != Sharding::none || unit.group < 0 || groups_[unit.group].rank() == 0);
    worker_.norm = {worker_.stage(), plan_, policy, counts};
    step_ = program(plan_.step);
    evaluate_ = program(plan_.evaluate);
    if constexpr (comm::RecordsCalls<C>)
      if (world.size() > 1) agree_on_records();
    const AfterDevice after{world, worker_.device()};
    try {
      begin_calls(setup_);
      run(setup_);
      settle();
    } catch (...) {
      abandon();
      throw;
    }
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// A step that was started is waited for, until the deadline; by a rank that leaves by an exception it is given up.
  ~Engine() {
    if constexpr (comm::HasDeviceBuffers<C>) leave();
  }

  /// Throws ConfigError where a world on GPUs has another one than the model.
  static void check_device(const C& world, const D& device) {
    if constexpr (comm::HasDeviceBuffers<C>)
      if (world.device() != device.index())
        throw ConfigError{text("rank ", world.rank(), ": the communicator uses GPU ", world.device(), ", but the model is on GPU ",
                               device.index(), "; make both for the same one")};
  }
  /// The plan that it carries out: the one that it was given, unless the ranks see each other's memory.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// A rank's plan as its engine carries it out.
  static Plan adapted(const C& world, Plan plan, int rank) {
    if constexpr (sees_memory)
      if (world.shares_memory()) return in_common_memory(std::move(plan), {rank, world.size()});
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
    begin_calls(step_);
    worker_.begin(batch, true, {.lr_factor = lr_factor, .global_rows = global_rows_});
    counts_rows_ = global_rows_ == 0;
    if (!times_.empty())
      run(step_, times_.data());
    else if (together)
      carry_out_together();
    else
      carry_out_all(0, batch.x.rows, step_);
  }
  Totals finish() {
    const StepNumbers found = numbers();
    if (found.skips && worker_.norm.stops()) stop();
    return {found.sums.loss, found.sums.correct, static_cast<double>(global_rows_), found.norm, found.skips, found.loss_scale};
  }

  /// Loss and accuracy of the rows whose loss this rank takes, of a tensor-parallel group its first rank alone, without a change to
  /// anything. No message travels unless the plan says so.
  Totals evaluate(const StepBatch& batch) {
    worker_.check(batch, false);
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin(batch, false);
    begin_calls(evaluate_);
    carry_out_all(1, batch.x.rows, evaluate_);
    const LossSums found = numbers().sums;
    return {found.loss, found.correct, judges_ && counts_ ? static_cast<double>(batch.x.rows) : 0};
  }

  /// The model's output for this rank's rows. It lives until the next call.
  Matrix<const Input> predict(Matrix<const Input> x) {
    const AfterDevice after{groups_.world(), worker_.device()};
    worker_.begin_prediction(x);
    begin_calls(evaluate_);
    carry_out_all(2, x.rows, evaluate_);
    settle();
    if (!stage().outline().output_is_sharded) return worker_.output();
    C& group = groups_[plan_.tensor_group];
    return worker_.join_output([&](std::span<const T> own, std::span<T> all) { join(group, own, all).wait(); });
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// A list of instructions, and for each that starts a message, or waits for one, the place of its handle.
  struct Program {
    const Instructions* list = nullptr;
    std::vector<std::size_t> handles{};
    std::vector<std::size_t> joined{};  // how many instructions are carried out together with each, itself included
    bool has_calls = false;             // in which other ranks have a part
  };
  Program program(const Instructions& list) {
    Program made{&list};
    std::vector<Instruction> starts;
    for (const Instruction& i : list) {
      Instruction start = i;
      if (i.op == Op::send_wait) start.op = Op::send_start;
      if (i.op == Op::receive_wait) start.op = Op::receive_start;
      if (i.op == Op::sum_wait) start.op = Op::sum_start;
      const bool is_message = start.op == Op::send_start || start.op == Op::receive_start || start.op == Op::sum_start;
      const auto handle = static_cast<std::size_t>(std::ranges::find(starts, start) - starts.begin());
      if (is_message && handle == starts.size()) {
        if (start != i) throw PlanError{text(describe(i), ": nothing in the plan has started it")};
        starts.push_back(start);
      }
      made.handles.push_back(handle);
    }
    made.has_calls = std::ranges::any_of(list, [this](const Instruction& i) { return is_call(i.op) && groups_[i.group].size() > 1; });
    for (std::size_t at = 0; at < list.size(); ++at) made.joined.push_back(joined(list, at));
    if (messages_.size() < starts.size()) messages_.resize(starts.size());
    return made;
  }

  /// As a device may have recorded it, where no other rank has a part in it. `kind`: which list, for which purpose.
  void carry_out_all(Index kind, Index rows, const Program& program) {
    if (comm::HasDeviceBuffers<C> && program.has_calls) return run(program);
    const auto place = [](const void* memory) { return static_cast<Index>(reinterpret_cast<std::intptr_t>(memory)); };
    const auto [x, targets] = worker_.where();
    replay(worker_.device(), recordings_, std::array<Index, 4>{kind, rows, place(x), place(targets)}, [&] { run(program); });
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
  /// Whether all ranks record their steps. Where they do, nothing in a record may depend on one rank alone, such as where its batch lies.
  void agree_on_records() {
    Index records = worker_.device().records() ? 1 : 0;
    host_calls().all_reduce(std::span{&records, 1}, comm::Min{});
    records_together_ = records == 1;
    if (records_together_) worker_.copy_batches();
  }

  /// `times`: where to write when each instruction began and ended; may be null.
  void run(const Program& program, Timed* times = nullptr) {
    for (std::size_t at = 0; at < program.list->size();) {
      const std::size_t count = program.joined[at];
      if (times != nullptr) times[at].begin = since_origin();
      carry_out(program, at);
      at += count;
      if (times != nullptr) {
        settle_in_a_step();
        times[at - count].end = since_origin();
      }
      for (std::size_t other = 1; times != nullptr && other < count; ++other)  // they are part of the first
        times[at - other] = {times[at - count].end, times[at - count].end};
    }
  }
  [[nodiscard]] double since_origin() const { return std::chrono::duration<double>(Clock::now() - origin_).count(); }

  void carry_out(const Program& program, std::size_t at) {
    const Instruction& i = (*program.list)[at];
    C& group = groups_[i.group];
    if constexpr (comm::HasDeviceBuffers<C>) worker_.device().begin_all();  // or a call would come before what it is to come after
    switch (i.op) {
      case Op::count_start:
        if (!counts_rows_) break;
        global_rows_ = own_rows_;
        counting_ = group.all_reduce_async(std::span{&global_rows_, 1}, comm::Sum{});
        break;
      case Op::count_wait:
        if (!counts_rows_) break;
        counting_.wait();
        check_global_rows();
        worker_.set_global_rows(global_rows_);
        break;
      case Op::loss:
        worker_.run(i);
        break;
      case Op::forward:
      case Op::backward_input:
      case Op::backward_weight:
        if (const std::size_t count = program.joined[at]; count > 1) {
          worker_.run_joined(i, static_cast<int>(count), [this] { groups_.world().progress(); });
        } else {
          compute(i, program.list == &plan_.step);
        }
        break;
      case Op::update:
        worker_.apply(i.unit, takes_norm_ ? std::span<const Gradient* const>{} : memory_.gradients(i.unit), memory_.others_values(i.unit));
        break;
      case Op::send_start:
      case Op::receive_start:
        messages_[program.handles[at]] = message(i);
        break;
      case Op::sum_start:
        messages_[program.handles[at]] = sum(group, worker_.boundary(i));
        break;
      case Op::send_wait:
      case Op::receive_wait:
      case Op::sum_wait:
        wait(messages_[program.handles[at]]);
        break;
      case Op::share_loss:
        worker_.run(i);
        wait(join(group, std::span<const Gradient>{worker_.own_parts()}, worker_.all_parts()));
        break;
      case Op::reduce_start:
        worker_.watch(i.unit);
        reductions_[static_cast<std::size_t>(i.unit)] = reduce(group, i);
        break;
      case Op::reduce_wait:
        wait(reductions_[static_cast<std::size_t>(i.unit)]);
        check_met(i);
        end_reduction(i);
        break;
      case Op::gather_start:
        gathers_[static_cast<std::size_t>(i.unit)] = gather(group, i);
        break;
      case Op::gather_wait:
        wait(gathers_[static_cast<std::size_t>(i.unit)]);
        check_met(i);
        break;
      case Op::broadcast:
        wait(group.broadcast_async(stage().values(i.unit), i.peer));
        if constexpr (has_masters)
          if (plan_.units[static_cast<std::size_t>(i.unit)].slices == 1) wait(group.broadcast_async(stage().own_masters(i.unit), i.peer));
        break;
      case Op::norm_start:
        worker_.add_squares();
        norming_ = sum(group, worker_.square());
        break;
      case Op::norm_wait:
        wait(norming_);
        worker_.judge();
        break;
      case Op::totals_start:
        totalling_ = sum(group, worker_.sums());
        break;
      case Op::totals_wait:
        wait(totalling_);
        break;
    }
  }

  Work message(const Instruction& i) {
    const auto [group, peer] = lanes_.way(i);
    if (i.op == Op::receive_start) return group.recv_async(worker_.boundary(i), peer, tag(i));
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

  void begin_calls(const Program& program) { has_calls_in_flight_ = has_calls_in_flight_ || program.has_calls; }
  /// Until the device has carried out all that it was given, or its deadline is over, or, where other ranks have a part in it, the world
  /// has failed.
  void settle() {
    if constexpr (comm::HasDeviceBuffers<C>) {
      C& world = groups_.world();
      const auto until = comm::Clock::now() + world.deadline();
      while (!worker_.device().is_idle()) {
        if (has_calls_in_flight_) world.progress();  // the ranks may have gone of which nothing is wanted
        if (comm::Clock::now() >= until) {
          const std::string reason = text(
              "rank ", world.rank(), " has waited for its device, and so for the other ranks, as long as its deadline allows; either one ",
              "has failed, or makes other calls, or a step needs a longer deadline");
          world.abort(reason);
          throw Timeout{reason};
        }
        std::this_thread::yield();
      }
      has_calls_in_flight_ = false;
    }
  }
  /// Until the device is through with what it was given so far, so that an instruction ends when it is carried out, and not when it is
  /// given to the device. Calls go on meanwhile.
  void settle_in_a_step() {
    if constexpr (comm::HasDeviceBuffers<C>) {
      const bool has_calls = has_calls_in_flight_;
      settle();
      has_calls_in_flight_ = has_calls;
    } else if constexpr (requires { worker_.device().synchronize(); }) {
      worker_.device().synchronize();
    }
  }
  [[nodiscard]] StepNumbers numbers() {
    settle();
    return worker_.numbers();
  }
  /// The memory of calls cannot be let go of while the device is in the middle of them, and waits for ranks that may never come.
  void leave() noexcept {
    if (!has_calls_in_flight_) return;
    try {
      if (std::uncaught_exceptions() <= exceptions_) return settle();
    } catch (const Error&) {
    }
    abandon();
  }
  void abandon() noexcept {
    if constexpr (comm::HasDeviceBuffers<C>) {
      if (!has_calls_in_flight_) return;
      try {
        if (worker_.device().is_idle()) return;
      } catch (const Error&) {  // the device has failed
      }
      C& world = groups_.world();
      world.abort(text("rank ", world.rank(), " has left its model by an error, in the middle of calls"));
    }
  }

  void check_global_rows() const {
    if (global_rows_ == 0) throw ConfigError{"a step was made without a single row on any rank; end the epoch where the data ends"};
  }
  /// Asks all ranks how many rows they have, and how many of them they count.
  void count_rows(Index rows) {
    const std::array<Index, 2> own{rows, own_rows_};
    counted_.resize(own.size() * static_cast<std::size_t>(groups_.world().size()));
    host_calls().all_gather(std::span<const Index>{own}, std::span{counted_});
    for (std::size_t at = 1; at < counted_.size(); at += own.size()) global_rows_ += counted_[at];
    check_global_rows();
  }
  [[nodiscard]] auto host_calls() { return HostCalls{groups_.world(), worker_.device()}; }

  /// Layer by layer: what is in flight moves in between. Of an evaluation nothing is, and ranks may have gone.
  void compute(const Instruction& i, bool in_a_step) {
    for (int done = 0; done < i.last - i.first; ++done) {
      const int layer = i.op == Op::forward ? i.first + done : i.last - 1 - done;
      worker_.run(parallel::compute(i.op, i.micro_batch, layer, layer + 1, i.accumulate));
      if (in_a_step) groups_.world().progress();
    }
  }

  /// Each rank of a group gets a sum, or its slice of one, or all get the whole of what each has a slice of. Where it is alone, nothing
  /// travels, and the device copies what is its own.
  template <class E>
  Work sum(C& group, std::span<E> values) {
    if (group.size() > 1) return group.all_reduce_async(values, comm::Sum{});
    return {};
  }
  template <class E>
  Work scatter_sum(C& group, std::span<const E> whole, std::span<E> slice) {
    if (group.size() > 1) return group.reduce_scatter_async(whole, slice, comm::Sum{});
    keep(whole, slice);
    return {};
  }
  template <class E>
  Work join(C& group, std::span<const E> slice, std::span<E> whole) {
    if (group.size() > 1) return group.all_gather_async(slice, whole);
    keep(slice, whole);
    return {};
  }
  template <class E>
  void keep(std::span<const E> from, std::span<E> to) {
    if (from.data() != to.data()) copy(worker_.device(), from, to.data());
  }

  /// Each rank gets the sum of a unit's gradients, or its slice of it: reduce() starts it, and end_reduction() has what came.
  Work reduce(C& group, const Instruction& i) {
    if constexpr (sees_memory)
      if (is_common(i)) return meet(group, i);
    const bool is_whole = plan_.units[static_cast<std::size_t>(i.unit)].sharding == Sharding::none;
    if constexpr (rounds) {
      const std::span<Reduced> sent = rounded_.round(stage(), i.unit);
      if (is_whole) return sum(group, sent);
      return scatter_sum(group, std::span<const Reduced>{sent}, rounded_.own(stage(), i.unit));
    } else {
      if (is_whole) return sum(group, stage().gradients(i.unit));
      return scatter_sum(group, std::span<const Gradient>{stage().gradients(i.unit)}, sum_of(i));
    }
  }
  void end_reduction(const Instruction& i) {
    if (is_common(i)) {  // the update adds up what nobody wants to know before
      if (takes_norm_) memory_.reduce(stage().device(), i.unit, stage().own_gradients(i.unit));
      return;
    }
    if constexpr (rounds) {
      const bool is_whole = plan_.units[static_cast<std::size_t>(i.unit)].sharding == Sharding::none;
      const std::span<Gradient> to = is_whole ? stage().gradients(i.unit) : sum_of(i);
      rounded_.spread(stage(), is_whole ? rounded_.whole(i.unit, to.size()) : rounded_.own(stage(), i.unit), to);
    }
    if (i.accumulate) worker_.add_scratch(i.unit);
  }
  /// Each rank's slice of a unit's parameters, to all of its group. Where update has left them there already, all that is to be known is
  /// that it has.
  Work gather(C& group, const Instruction& i) {
    if constexpr (sees_memory)
      if (is_common(i)) return meet(group, i);
    return join(group, std::span<const T>{stage().own_values(i.unit)}, stage().values(i.unit));
  }
  /// Waits for the ranks of a group at a unit, of which each has to be at the same one. All of them learn the least mark and the greatest,
  /// so that where these differ none goes on to look at what another still writes.
  Work meet(C& group, const Instruction& i) {
    std::array<std::int64_t, 2>& marks = marks_[static_cast<std::size_t>(i.unit)];
    marks = {mark_of(i), -mark_of(i)};
    return group.all_reduce_async(std::span{marks}, comm::Max{});
  }
  void check_met(const Instruction& i) const {
    const auto [greatest, negated_least] = marks_[static_cast<std::size_t>(i.unit)];
    if (is_common(i) && greatest != -negated_least)
      throw PlanError{text(describe(i),
                           ": the ranks of the group are not at the same unit, or have theirs in another order; give the units of ",
                           "all ranks, and their collectives, one order")};
  }
  [[nodiscard]] std::int64_t mark_of(const Instruction& i) const {
    const bool reduces = i.op == Op::reduce_start || i.op == Op::reduce_wait;
    return 2 * memory_.mark(i.unit) + (reduces ? 0 : 1);
  }
  /// Whether what a group does with a unit is done in memory that all of it see.
  [[nodiscard]] bool is_common(const Instruction& i) const { return sees_memory && memory_.is_common(i.unit); }

  /// Where the sum of this rank's slice comes.
  [[nodiscard]] std::span<Gradient> sum_of(const Instruction& i) {
    return i.accumulate ? worker_.scratch(i.unit) : stage().own_gradients(i.unit);
  }

  /// Says on every rank whose gradient was not finite, and which tensor of it: nearest to the loss, and there on the lowest rank.
  [[noreturn]] void stop() {
    C& world = groups_.world();
    const auto culprit = worker_.norm.culprit(worker_.device());
    std::int64_t found = culprit.layer < 0 ? -1 : std::int64_t{culprit.layer} * world.size() + (world.size() - 1 - world.rank());
    host_calls().all_reduce(std::span{&found, 1}, comm::Max{});
    constexpr const char* what_to_do =
        "and no parameter has been changed; look at the samples of that step, lower the learning rate, or skip such steps "
        "(NonFinite::skip)";
    if (found < 0)
      throw NonFiniteGradient{
          text("step ", steps() - 1, ": the gradient is finite on each rank, but its sum over all ranks is not, ", what_to_do)};
    const int rank = world.size() - 1 - static_cast<int>(found % world.size());
    std::array<std::byte, 64> letters{};  // a name that is longer is cut
    std::string name = culprit.name;
    std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(name.size(), letters.size())), letters.begin(),
                   [](char letter) { return static_cast<std::byte>(letter); });
    host_calls().broadcast(std::span<std::byte>{letters}, rank);
    name.clear();
    for (const std::byte letter : letters)
      if (letter != std::byte{}) name += static_cast<char>(letter);
    throw NonFiniteGradient{
        text("step ", steps() - 1, ": the gradient of ", name, " on rank ", rank, " is not finite (NaN or infinity), ", what_to_do)};
  }

  /// Tells the messages between two ranks apart that may be in flight at once.
  [[nodiscard]] int tag(const Instruction& i) {
    return (i.micro_batch * (stage().outline().size() + 1) + i.first) * 2 + (i.tensor == parallel::Tensor::gradient ? 1 : 0);
  }

  int exceptions_ = std::uncaught_exceptions();
  Plan plan_;
  Groups<C> groups_;
  Lanes<C> lanes_;
  UnitMemory<C, D, T, Reduced> memory_;
  Worker worker_;
  RoundedGradients<C, typename Worker::Stage, Reduced> rounded_;  // where they travel so
  bool takes_loss_, judges_, counts_;  // in a step, in an evaluation: each row counts on the rank that takes its loss, and on the first
                                       // where a group takes it together
  bool takes_norm_;                    // of the whole gradient, before it is applied
  Index own_rows_ = 0, global_rows_ = 0;
  bool has_calls_in_flight_ = false;  // of a list that was begun, and that the host has not waited for
  bool counts_rows_ = false;          // in this step, as the caller does not know how many there are on all ranks
  typename D::Recordings recordings_;
  typename D::Recordings recordings_together_;  // of steps, by their split
  RecordedSplits splits_;
  bool records_together_ = false;
  std::vector<Index> counted_;  // of each rank, the rows and those that it counts, where the caller does not know how many there are
  Program setup_, step_, evaluate_;
  std::vector<Timed> times_;  // of the instructions of a step, where they are recorded
  Clock::time_point origin_{};
  std::vector<std::array<std::int64_t, 2>> marks_;  // of units at which the ranks of a group meet: the greatest, and the least negated
  // What is in flight comes last, so that it is let go of before the memory that it borrows.
  std::vector<Work> messages_;
  std::vector<Work> reductions_, gathers_;  // of units
  Work counting_, norming_, totalling_;
};

}  // namespace pdp::parallel
