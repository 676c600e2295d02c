#pragma once

#include <algorithm>
#include <cstdint>

#include <pdp/nn/outline.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan {

/// A tensor that lives between instructions: at a boundary, or what a layer saves.
enum class Kind : std::uint8_t { activation, gradient, saved };
constexpr Kind kind_of(Tensor tensor) { return tensor == Tensor::activation ? Kind::activation : Kind::gradient; }

enum class Access : std::uint8_t {
  read,
  write,   // whatever was there before
  update,  // what was there is changed
  arrive   // a message brings it
};

/// What an instruction does with one tensor of its micro-batch.
struct Effect {
  Kind kind = Kind::activation;
  int number = 0;  // of the boundary, or of the layer that saves it
  Access access = Access::read;
  int layer = -1;  // that computes; -1: none does

  friend constexpr bool operator==(const Effect&, const Effect&) = default;
};

/// Calls visit(effect) with what an instruction reads and writes of the tensors of its micro-batch, in the order in which it does. A layer
/// may use more: backward of it may read its input and its output. Layers that pass no gradient on do nothing in backward_input.
template <class Visit>
constexpr void for_each_effect(const Instruction& i, const nn::Outline& model, Visit&& visit) {
  if (computes_layers(i.op)) {
    for (int layer = i.first; layer < i.last; ++layer) {
      const bool is_forward = i.op == Op::forward, passes = i.op == Op::backward_input;
      if (passes && !model.passes_gradient(layer)) continue;
      visit(Effect{Kind::activation, layer, Access::read, layer});
      visit(Effect{Kind::activation, layer + 1, is_forward ? Access::write : Access::read, layer});
      if (passes) visit(Effect{Kind::gradient, layer, Access::write, layer});
      if (!is_forward) visit(Effect{Kind::gradient, layer + 1, Access::read, layer});
      visit(Effect{Kind::saved, layer, is_forward ? Access::write : passes ? Access::update : Access::read, layer});
    }
  } else if (info(i.op).kind == OpKind::loss) {
    visit(Effect{Kind::activation, i.first, Access::read});
    if (i.op == Op::loss) visit(Effect{Kind::gradient, i.first, Access::write});
  } else if (moves_boundary(i.op)) {
    const OpKind kind = info(i.op).kind;
    visit(Effect{kind_of(i.tensor), i.first,
                 kind == OpKind::send      ? Access::read
                 : kind == OpKind::receive ? Access::arrive
                                           : Access::update});
  }
}

/// Whether an instruction is about layers among [first, last).
constexpr bool overlaps(const Instruction& i, int first, int last) { return i.first < last && first < i.last; }
/// Whether it may read parameters of layers [first, last).
constexpr bool reads_parameters(const Instruction& i, int first, int last) {
  return (i.op == Op::forward || i.op == Op::backward_input) && overlaps(i, first, last);
}
/// Whether it computes gradients of parameters of layers [first, last).
constexpr bool computes_parameter_gradients(const Instruction& i, int first, int last) {
  return i.op == Op::backward_weight && overlaps(i, first, last);
}
/// Whether it computes or sends from the gradient at a boundary.
constexpr bool reads_gradient(const Instruction& i, int boundary) {
  if (i.op == Op::backward_input || i.op == Op::backward_weight) return i.first < boundary && boundary <= i.last;
  return i.op == Op::send_start && i.tensor == Tensor::gradient && i.first == boundary;
}

}  // namespace pdp::plan
