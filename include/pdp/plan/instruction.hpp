#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::plan {

/// What a rank does in a step, a set-up or an evaluation: a list of these, and nothing else.
enum class Op : std::uint8_t {
  // Rows of the step over all ranks, before the first loss. Nothing travels where the caller knows them.
  count_start,
  count_wait,
  // Compute: a micro-batch, layers [first, last). The loss is taken at the boundary after the last layer.
  forward,
  loss,
  backward_input,   // from the last layer to the first: gradients of the boundaries
  backward_weight,  // gradients of the parameters
  // A boundary's activation or gradient of a micro-batch, to or from a peer of a group. The boundary is `first`.
  send_start,
  send_wait,
  receive_start,
  receive_wait,
  // A boundary's activation or gradient of a micro-batch, of which each rank of a group has a term, summed on all of them.
  sum_start,
  sum_wait,
  // What each rank of a group knows of a micro-batch's loss from its columns of the output, to all of them; before the loss.
  share_loss,
  // Gradients of a unit, summed over its group: each rank keeps the sum, or its slice of it.
  reduce_start,
  reduce_wait,
  // Parameters of a unit, from the peer to its group.
  broadcast,
  // Parameters of a unit, each rank's slice to all of its group.
  gather_start,
  gather_wait,
  // The norm of the whole gradient, over all ranks: between the last reduction and the first update, in plans that need it.
  norm_start,
  norm_wait,
  // The sums that a report needs: loss, correct rows.
  totals_start,
  totals_wait,
  // The optimizer, on a unit.
  update
};

/// Whether the other ranks of its group have a part in it.
constexpr bool is_call(Op op) {
  return op != Op::forward && op != Op::loss && op != Op::backward_input && op != Op::backward_weight && op != Op::update;
}

enum class Tensor : std::uint8_t { activation, gradient };
constexpr const char* name(Tensor tensor) { return tensor == Tensor::activation ? "activation" : "gradient"; }

/// The most micro-batches of a step, layers of a model, units and groups of a rank that a plan can number.
inline constexpr int most_numbered = std::numeric_limits<std::int16_t>::max();

struct Instruction {
  Op op = Op::forward;
  Tensor tensor = Tensor::activation;  // of a message
  bool accumulate = false;             // of backward_weight, and of a reduction to slices: add to the gradients that are there
  std::int16_t group = 0;              // 0: the world
  std::int16_t micro_batch = 0;
  std::int16_t first = 0, last = 0;  // layers
  std::int16_t unit = -1;
  std::int32_t peer = -1;  // rank in the group

  friend constexpr bool operator==(const Instruction&, const Instruction&) = default;
};

using Instructions = std::vector<Instruction>;

/// How many instructions, from one on, compute gradients of the same parameters from micro-batches that follow each other. Their rows may
/// be taken together: one product in place of several, and one addition to what is there. 1 where there is nothing to take together.
constexpr std::size_t joined(const Instructions& list, std::size_t at) {
  std::size_t end = at + 1;
  const Instruction& first = list[at];
  if (first.op != Op::backward_weight) return 1;
  for (; end < list.size(); ++end) {
    Instruction next = first;
    next.accumulate = true;
    next.micro_batch = static_cast<std::int16_t>(first.micro_batch + as_int(end - at));
    if (list[end] != next) break;
  }
  return end - at;
}

namespace detail {

/// The number of a micro-batch, a layer, a unit or a group, as an instruction keeps it.
constexpr std::int16_t numbered(int number, const char* what) {
  if (number < -1 || number > most_numbered)
    throw PlanError{text("an instruction was to name ", what, " ", number, ", but a plan numbers those from 0 to ", most_numbered,
                         "; a step takes at most ", most_numbered, " micro-batches, and a model has at most as many layers")};
  return static_cast<std::int16_t>(number);
}

}  // namespace detail

/// The words of a plan: shorter ways to write the instructions. They throw PlanError for a number that is too large (most_numbered).
constexpr Instruction compute(Op op, int micro_batch, int first, int last, bool accumulate = false) {
  return {.op = op,
          .accumulate = accumulate,
          .micro_batch = detail::numbered(micro_batch, "micro-batch"),
          .first = detail::numbered(first, "layer"),
          .last = detail::numbered(last, "layer")};
}
constexpr Instruction message(Op op, Tensor tensor, int micro_batch, int boundary, int peer, int group = 0) {
  return {.op = op,
          .tensor = tensor,
          .group = detail::numbered(group, "group"),
          .micro_batch = detail::numbered(micro_batch, "micro-batch"),
          .first = detail::numbered(boundary, "layer"),
          .last = detail::numbered(boundary, "layer"),
          .peer = peer};
}
constexpr Instruction on_unit(Op op, int unit, int group = 0, int peer = -1, bool accumulate = false) {
  return {
      .op = op, .accumulate = accumulate, .group = detail::numbered(group, "group"), .unit = detail::numbered(unit, "unit"), .peer = peer};
}
constexpr Instruction sum(Op op, Tensor tensor, int micro_batch, int boundary, int group) {
  return message(op, tensor, micro_batch, boundary, -1, group);
}
constexpr Instruction collective(Op op, int group = 0) { return {.op = op, .group = detail::numbered(group, "group")}; }

/// Whether an instruction is a message, or about a unit of several ranks: where its group is that of a strategy's own ranks, and not of
/// all.
constexpr bool is_between_ranks_of_a_strategy(Op op) {
  switch (op) {
    case Op::send_start:
    case Op::send_wait:
    case Op::receive_start:
    case Op::receive_wait:
    case Op::reduce_start:
    case Op::reduce_wait:
    case Op::broadcast:
    case Op::gather_start:
    case Op::gather_wait:
      return true;
    default:
      return false;
  }
}

constexpr const char* name(Op op) {
  switch (op) {
    case Op::count_start:
      return "count_start";
    case Op::count_wait:
      return "count_wait";
    case Op::forward:
      return "forward";
    case Op::loss:
      return "loss";
    case Op::backward_input:
      return "backward_input";
    case Op::backward_weight:
      return "backward_weight";
    case Op::send_start:
      return "send_start";
    case Op::send_wait:
      return "send_wait";
    case Op::receive_start:
      return "receive_start";
    case Op::receive_wait:
      return "receive_wait";
    case Op::sum_start:
      return "sum_start";
    case Op::sum_wait:
      return "sum_wait";
    case Op::share_loss:
      return "share_loss";
    case Op::reduce_start:
      return "reduce_start";
    case Op::reduce_wait:
      return "reduce_wait";
    case Op::broadcast:
      return "broadcast";
    case Op::gather_start:
      return "gather_start";
    case Op::gather_wait:
      return "gather_wait";
    case Op::norm_start:
      return "norm_start";
    case Op::norm_wait:
      return "norm_wait";
    case Op::totals_start:
      return "totals_start";
    case Op::totals_wait:
      return "totals_wait";
    case Op::update:
      return "update";
  }
  return "an unknown instruction";
}

/// "forward micro-batch 2, layers 0 to 3", "send_start activation 3 of micro-batch 2 to rank 1 of group 0", "reduce_start unit 1 in group
/// 0".
inline std::string describe(const Instruction& instruction) {
  const auto& i = instruction;
  switch (i.op) {
    case Op::forward:
    case Op::backward_input:
    case Op::backward_weight:
      return text(name(i.op), " micro-batch ", i.micro_batch, ", layers ", i.first, " to ", i.last - 1);
    case Op::loss:
      return text("loss micro-batch ", i.micro_batch);
    case Op::send_start:
    case Op::send_wait:
    case Op::receive_start:
    case Op::receive_wait:
      return text(name(i.op), ' ', name(i.tensor), ' ', i.first, " of micro-batch ", i.micro_batch,
                  i.op == Op::send_start || i.op == Op::send_wait ? " to rank " : " from rank ", i.peer, " of group ", i.group);
    case Op::sum_start:
    case Op::sum_wait:
      return text(name(i.op), ' ', name(i.tensor), ' ', i.first, " of micro-batch ", i.micro_batch, " in group ", i.group);
    case Op::share_loss:
      return text("share_loss micro-batch ", i.micro_batch, " in group ", i.group);
    case Op::reduce_start:
    case Op::reduce_wait:
    case Op::gather_start:
    case Op::gather_wait:
      return text(name(i.op), " unit ", i.unit, " in group ", i.group);
    case Op::broadcast:
      return text("broadcast unit ", i.unit, " from rank ", i.peer, " of group ", i.group);
    case Op::update:
      return text("update unit ", i.unit);
    case Op::count_start:
    case Op::count_wait:
    case Op::norm_start:
    case Op::norm_wait:
    case Op::totals_start:
    case Op::totals_wait:
      break;
  }
  return text(name(i.op), " in group ", i.group);
}

}  // namespace pdp::plan
