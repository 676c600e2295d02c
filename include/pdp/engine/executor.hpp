#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/message_tags.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/engine/row_count.hpp>
#include <pdp/engine/step_trace.hpp>
#include <pdp/engine/unit_calls.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Executes lists of instructions, in one loop for all strategies. The worker computes. Calls of groups exchange data with other ranks; the
/// executor owns their Work. Borrows all arguments of the constructor.
template <comm::Communicator C, class W, class Reduced>
class Executor {
  using T = typename W::T;
  using Gradient = typename W::Gradient;
  using Stage = typename W::Stage;
  using D = typename Stage::Device;
  using Work = typename C::Work;

 public:
  /// Every rank of each group makes this call if gradients are rounded. `messages`: the largest number of messages in a list.
  Executor(const plan::Plan& plan, const Groups<C>& groups, Channels<C>& channels, UnitMemory<C, D, T, Reduced>& memory, W& worker,
           RowCount<C>& rows, InFlight<C, D>& in_flight, std::size_t messages)
      : plan_{plan},
        groups_{groups},
        channels_{channels},
        worker_{worker},
        rows_{rows},
        in_flight_{in_flight},
        tags_{plan.micro_batches, worker.stage().outline().size()},
        units_{groups, plan, memory, worker.stage()},
        messages_(messages) {}

  /// Begins a call of the engine, from which the tags of later messages follow.
  void begin_call(Purpose purpose) { tags_.begin_call(purpose); }
  /// Begins a step. `counts_rows`: the caller does not know the number of rows on all ranks.
  void begin_step(bool counts_rows) { counts_rows_ = counts_rows; }

  void run(const Program& program) {
    for (std::size_t at = 0; at < program.list->size(); at += program.joined_count[at]) carry_out(program, at);
  }
  /// Runs a list and records the times of its instructions. Waits for each instruction that runs on a device.
  void run(const Program& program, StepTrace& trace) {
    for (std::size_t at = 0; at < program.list->size(); at += program.joined_count[at]) {
      trace.begin(at);
      carry_out(program, at);
      in_flight_.synchronise_so_far();
      trace.end(at, program.joined_count[at]);
    }
  }

 private:
  void carry_out(const Program& program, std::size_t at) {
    const plan::Instruction& i = (*program.list)[at];
    C& group = groups_[i.group];
    switch (i.op) {
      case plan::Op::count_start:
        if (counts_rows_) rows_.start(group);
        break;
      case plan::Op::count_wait:
        if (!counts_rows_) break;
        rows_.wait();
        worker_.set_global_rows(rows_.global());
        break;
      case plan::Op::loss:
      case plan::Op::forward_to_pause:
      case plan::Op::backward_to_pause:
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
        worker_.apply(i.unit, units_.gradients_to_add(i.unit), units_.others_values(i.unit));
        break;
      case plan::Op::send_start:
      case plan::Op::receive_start:
        messages_[program.message_of[at]] = message(i);
        break;
      case plan::Op::sum_start:
        messages_[program.message_of[at]] = start_all_reduce(group, worker_.device(), worker_.boundary(i));
        break;
      case plan::Op::send_wait:
      case plan::Op::receive_wait:
      case plan::Op::sum_wait:
        wait(messages_[program.message_of[at]]);
        break;
      case plan::Op::sum_in_pause:
        if constexpr (W::pauses) worker_.visit_sums(i, [&](auto values) { wait(start_all_reduce(group, worker_.device(), values)); });
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
        broadcast(group, i);
        break;
      case plan::Op::add_tied:
        for (const int layer : {i.first, i.last}) worker_.norm.watch_tied(worker_.device(), plan::unit_of(plan_, layer));
        units_.add_tied(i);
        break;
      case plan::Op::sum_tied:
        worker_.norm.watch_tied(worker_.device(), i.unit);
        wait(start_all_reduce(group, worker_.device(), worker_.stage().own_gradients(i.unit)));
        break;
      case plan::Op::norm_start:
        worker_.add_squares();
        norming_ = start_all_reduce(group, worker_.device(), worker_.square());
        break;
      case plan::Op::norm_wait:
        wait(norming_);
        worker_.apply_gradient_rule();
        break;
      case plan::Op::totals_start:
        totalling_ = start_all_reduce(group, worker_.device(), worker_.sums());
        break;
      case plan::Op::totals_wait:
        wait(totalling_);
        break;
    }
  }

  /// Computes layer by layer. In a step, makes progress on the calls in flight after each layer. In an evaluation no call is in flight, and
  /// other ranks may have left.
  void compute(plan::Instruction i, bool in_a_step) {
    while (i.first < i.last) {
      if (i.op == plan::Op::forward) {
        i = worker_.run_next(i);
      } else {
        --i.last;
        worker_.run(plan::compute(i.op, i.micro_batch, i.last, i.last + 1, i.accumulate));
      }
      if (in_a_step) groups_.world().progress();
    }
  }
  void broadcast(C& group, const plan::Instruction& i) {
    const auto send = [&](auto values) {
      order_before_call<C>(worker_.device(), values);
      wait(group.broadcast_async(values, i.peer));
    };
    send(worker_.stage().values(i.unit));
    if constexpr (Stage::has_masters)
      if (plan_.units[as_size(i.unit)].slices == 1) send(worker_.stage().own_masters(i.unit));
  }
  Work message(const plan::Instruction& i) {
    const auto [group, peer] = channels_.way(i);
    order_before_call<C>(worker_.device(), worker_.boundary(i));
    if (i.op == plan::Op::receive_start) return group.recv_async(worker_.boundary(i), peer, tags_(i));
    return group.send_async(std::span<const T>{worker_.boundary(i)}, peer, tags_(i));
  }
  /// Waits until a call is complete. If calls take device memory, orders later work of the device after the call instead.
  void wait(Work&& work) { wait(work); }
  void wait(Work& work) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      if (work.pending()) work.wait_on(worker_.device().stream());
    } else {
      work.wait();
    }
  }

  const plan::Plan& plan_;
  const Groups<C>& groups_;
  Channels<C>& channels_;
  W& worker_;
  RowCount<C>& rows_;
  InFlight<C, D>& in_flight_;
  MessageTags tags_;
  bool counts_rows_ = false;
  UnitCalls<C, D, T, Reduced> units_;
  // Work in flight is declared last, as in units_, so that it is destroyed before the memory that it borrows.
  std::vector<Work> messages_;
  Work norming_, totalling_;
};

}  // namespace pdp::engine
