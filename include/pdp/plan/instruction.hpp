#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/plan/operation.hpp>

namespace pdp::plan {

/// The two tensors of a boundary.
enum class Tensor : std::uint8_t { activation, gradient };
constexpr const char* name(Tensor tensor) { return tensor == Tensor::activation ? "activation" : "gradient"; }

/// The maximum number of micro-batches of a step, layers of a model, and units and groups of a rank in a plan.
inline constexpr int most_numbered = std::numeric_limits<std::int16_t>::max();

/// One instruction of a rank. The setup, a step and an evaluation are lists of instructions.
struct Instruction {
  Op op = Op::forward;
  Tensor tensor = Tensor::activation;  // of a message or a sum
  bool accumulate = false;             // for backward_weight and reductions to slices: add to the existing gradients
  std::int16_t group = 0;              // 0: the world
  std::int16_t micro_batch = 0;
  std::int16_t first = 0, last = 0;  // layers [first, last); for a message or a sum, the boundary is `first`
  std::int16_t unit = -1;
  std::int16_t pause = 0;  // of layer `first`
  std::int32_t peer = -1;  // rank in the group; -1: none

  friend constexpr bool operator==(const Instruction&, const Instruction&) = default;
};

using Instructions = std::vector<Instruction>;

/// start_of() returns the start that a wait belongs to, wait_of() the wait for a start. Both return other instructions unchanged.
constexpr Instruction start_of(Instruction i) {
  i.op = start_of(i.op);
  return i;
}
constexpr Instruction wait_of(Instruction i) {
  i.op = wait_of(i.op);
  return i;
}

/// Returns how many instructions, beginning at `at`, compute gradients of the same parameters from consecutive micro-batches. Their rows
/// may be computed together, with one product instead of several and one addition to the existing gradients. Returns 1 if there is nothing
/// to join.
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

/// Returns the number of a micro-batch, layer, unit or group in the type that an instruction stores. Throws PlanError if it is out of
/// range.
constexpr std::int16_t numbered(int number, const char* what) {
  if (number < -1 || number > most_numbered)
    throw PlanError{text("an instruction names ", what, " ", number, ", but a plan numbers them from 0 to ", most_numbered,
                         "; a step has at most ", most_numbered, " micro-batches, and a model at most as many layers")};
  return static_cast<std::int16_t>(number);
}

}  // namespace detail

/// Shorthands that make instructions. They throw PlanError if a number is greater than most_numbered.
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
/// `op`: forward_to_pause or backward_to_pause.
constexpr Instruction to_pause(Op op, int micro_batch, int layer, int pause) {
  Instruction i = compute(op, micro_batch, layer, layer + 1);
  i.pause = detail::numbered(pause, "pause");
  return i;
}
constexpr Instruction sum_in_pause(Tensor tensor, int micro_batch, int layer, int pause, int group) {
  Instruction i = sum(Op::sum_in_pause, tensor, micro_batch, layer, group);
  i.pause = detail::numbered(pause, "pause");
  return i;
}
/// Adds up the gradients of two layers that share a parameter.
constexpr Instruction add_tied(int first, int second) { return compute(Op::add_tied, 0, first, second); }
constexpr Instruction collective(Op op, int group = 0) { return {.op = op, .group = detail::numbered(group, "group")}; }

/// Describes an instruction in words: "forward micro-batch 2, layers 0 to 3", "send_start activation 3 of micro-batch 2 to rank 1 of group
/// 0", "reduce_start unit 1 in group 0".
inline std::string describe(const Instruction& i) {
  const OpKind kind = info(i.op).kind;
  std::string words = name(i.op);
  if (computes_layers(i.op)) return words + text(" micro-batch ", i.micro_batch, ", layers ", i.first, " to ", i.last - 1);
  if (kind == OpKind::pause || kind == OpKind::pause_sum) {
    words += text(" micro-batch ", i.micro_batch, ", pause ", i.pause, " of layer ", i.first);
    return kind == OpKind::pause ? words : words + text(i.tensor == Tensor::gradient ? " in backward" : "", " in group ", i.group);
  }
  if (kind == OpKind::tied) return words + text(" layers ", i.first, " and ", i.last);
  if (kind == OpKind::loss) words += text(" micro-batch ", i.micro_batch);
  if (is_of_unit(i.op)) words += text(" unit ", i.unit);
  if (moves_boundary(i.op)) words += text(' ', name(i.tensor), ' ', i.first, " of micro-batch ", i.micro_batch);
  if (kind == OpKind::send) return words + text(" to rank ", i.peer, " of group ", i.group);
  if (kind == OpKind::receive || i.op == Op::broadcast) return words + text(" from rank ", i.peer, " of group ", i.group);
  return is_call(i.op) ? words + text(" in group ", i.group) : words;
}

}  // namespace pdp::plan
