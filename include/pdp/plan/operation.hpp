#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <pdp/core/cast.hpp>

namespace pdp::plan {

/// The operation of an instruction. `ops` holds the kind of each operation, and relates starts to waits.
enum class Op : std::uint8_t {
  // Rows of the step over all ranks, before the first loss. Sends nothing if the caller knows their number.
  count_start,
  count_wait,
  // Computation: a micro-batch, layers [first, last). The loss is computed at the boundary after the last layer.
  forward,
  loss,
  backward_input,   // gradients of the boundaries, from the last layer to the first
  backward_weight,  // gradients of the parameters
  // Computation of a layer up to a pause, in which the ranks may add up numbers (see nn/pauses.hpp).
  forward_to_pause,
  backward_to_pause,
  // Messages: a boundary's activation or gradient of a micro-batch, to or from a peer of a group. The boundary is `first`.
  send_start,
  send_wait,
  receive_start,
  receive_wait,
  // All-reduce of a boundary's activation or gradient of a micro-batch. Each rank of a group has one term of the sum.
  sum_start,
  sum_wait,
  // All-reduce of what a layer adds up in a pause, over the ranks that have the layer and other rows, or over those that have its other
  // parts. `tensor`: in forward or in backward.
  sum_in_pause,
  // All-gather before the loss of a micro-batch: each rank of a group sends the numbers that it has computed from its own output columns.
  share_loss,
  // Reduction of a unit's gradients over its group: each rank gets the sum, or its slice of it.
  reduce_start,
  reduce_wait,
  // Broadcast of a unit's parameters from the peer to its group.
  broadcast,
  // All-gather of a unit's parameters: each rank's slice to all ranks of its group.
  gather_start,
  gather_wait,
  // Sum of the gradients of two layers that share a parameter, after their reductions. Each gets the sum. add_tied: this rank has both
  // layers. sum_tied: all-reduce over the two ranks that have one layer each.
  add_tied,
  sum_tied,
  // Norm of the whole gradient over all ranks, between the last reduction and the first update, in plans that need it.
  norm_start,
  norm_wait,
  // Sums for the report: loss, correct rows.
  totals_start,
  totals_wait,
  // The optimizer's update of a unit.
  update
};

/// The kind of an operation, which determines the fields of an instruction that it uses. Each comment lists these fields.
enum class OpKind : std::uint8_t {
  step,    // sums for the whole step: group
  layers,  // micro_batch, first, last
  loss,    // micro_batch, first; share_loss also group
  pause,   // micro_batch, first, pause
  send,    // messages: tensor, micro_batch, first, group, peer
  receive,
  sum,        // tensor, micro_batch, first, group
  pause_sum,  // tensor, micro_batch, first, pause, group
  unit_call,  // unit, group; broadcast also peer
  tied,       // first, last: the two layers
  update      // unit
};

/// An operation may be whole, or one of two halves: the start, which returns at once, and the wait for the end.
enum class Half : std::uint8_t { none, start, wait };

/// The properties of an operation.
struct OpInfo {
  Op op;
  const char* name;
  OpKind kind;
  Half half = Half::none;
  bool is_call = false;  // the other ranks of the group take part
};

/// The operations in the order of their enumerators. A wait comes directly after its start.
inline constexpr std::array ops{
    OpInfo{Op::count_start, "count_start", OpKind::step, Half::start, true},
    OpInfo{Op::count_wait, "count_wait", OpKind::step, Half::wait, true},
    OpInfo{Op::forward, "forward", OpKind::layers},
    OpInfo{Op::loss, "loss", OpKind::loss},
    OpInfo{Op::backward_input, "backward_input", OpKind::layers},
    OpInfo{Op::backward_weight, "backward_weight", OpKind::layers},
    OpInfo{Op::forward_to_pause, "forward_to_pause", OpKind::pause},
    OpInfo{Op::backward_to_pause, "backward_to_pause", OpKind::pause},
    OpInfo{Op::send_start, "send_start", OpKind::send, Half::start, true},
    OpInfo{Op::send_wait, "send_wait", OpKind::send, Half::wait, true},
    OpInfo{Op::receive_start, "receive_start", OpKind::receive, Half::start, true},
    OpInfo{Op::receive_wait, "receive_wait", OpKind::receive, Half::wait, true},
    OpInfo{Op::sum_start, "sum_start", OpKind::sum, Half::start, true},
    OpInfo{Op::sum_wait, "sum_wait", OpKind::sum, Half::wait, true},
    OpInfo{Op::sum_in_pause, "sum_in_pause", OpKind::pause_sum, Half::none, true},
    OpInfo{Op::share_loss, "share_loss", OpKind::loss, Half::none, true},
    OpInfo{Op::reduce_start, "reduce_start", OpKind::unit_call, Half::start, true},
    OpInfo{Op::reduce_wait, "reduce_wait", OpKind::unit_call, Half::wait, true},
    OpInfo{Op::broadcast, "broadcast", OpKind::unit_call, Half::none, true},
    OpInfo{Op::gather_start, "gather_start", OpKind::unit_call, Half::start, true},
    OpInfo{Op::gather_wait, "gather_wait", OpKind::unit_call, Half::wait, true},
    OpInfo{Op::add_tied, "add_tied", OpKind::tied},
    OpInfo{Op::sum_tied, "sum_tied", OpKind::unit_call, Half::none, true},
    OpInfo{Op::norm_start, "norm_start", OpKind::step, Half::start, true},
    OpInfo{Op::norm_wait, "norm_wait", OpKind::step, Half::wait, true},
    OpInfo{Op::totals_start, "totals_start", OpKind::step, Half::start, true},
    OpInfo{Op::totals_wait, "totals_wait", OpKind::step, Half::wait, true},
    OpInfo{Op::update, "update", OpKind::update},
};

constexpr const OpInfo& info(Op op) { return ops[as_size(op)]; }
/// Returns the name of an operation, or "an unknown instruction" if the value is not an operation.
constexpr const char* name(Op op) { return as_size(op) < ops.size() ? info(op).name : "an unknown instruction"; }
/// Returns whether the other ranks of the group take part in an operation.
constexpr bool is_call(Op op) { return info(op).is_call; }
constexpr bool is_start(Op op) { return info(op).half == Half::start; }
constexpr bool is_wait(Op op) { return info(op).half == Half::wait; }

/// Returns the start that a wait belongs to, and other operations unchanged.
constexpr Op start_of(Op op) { return is_wait(op) ? ops[as_size(op) - 1].op : op; }
/// Returns the wait for a start, and other operations unchanged.
constexpr Op wait_of(Op op) { return is_start(op) ? ops[as_size(op) + 1].op : op; }

/// Returns whether an operation computes layers: forward, or one half of backward.
constexpr bool computes_layers(Op op) { return info(op).kind == OpKind::layers; }
/// Returns whether an operation is one half of a message between two ranks.
constexpr bool is_message(Op op) { return info(op).kind == OpKind::send || info(op).kind == OpKind::receive; }
/// Returns whether an operation exchanges a boundary's tensor with other ranks: messages and sums.
constexpr bool moves_boundary(Op op) { return is_message(op) || info(op).kind == OpKind::sum; }
/// Returns whether an operation names a unit of parameters.
constexpr bool is_of_unit(Op op) { return info(op).kind == OpKind::unit_call || info(op).kind == OpKind::update; }
/// Returns whether an operation uses a group that the strategy chooses. True for messages and for calls on units. The group of the other
/// calls is the world, the tensor-parallel group, or that of a unit.
constexpr bool is_between_ranks_of_a_strategy(Op op) { return is_message(op) || info(op).kind == OpKind::unit_call; }

static_assert([] {
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const bool follows_start = at > 0 && ops[at - 1].half == Half::start && ops[at - 1].kind == ops[at].kind;
    if (as_size(ops[at].op) != at || (ops[at].half == Half::wait) != follows_start) return false;
  }
  return ops.back().half != Half::start;
}());

}  // namespace pdp::plan
