#pragma once

#include <algorithm>
#include <cstdint>

#include <pdp/core/cast.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan {

/// The kind of a tensor that lives between instructions: at a boundary, or saved by a layer.
enum class Kind : std::uint8_t { activation, gradient, saved };
constexpr Kind kind_of(Tensor tensor) { return tensor == Tensor::activation ? Kind::activation : Kind::gradient; }

/// The kind of access of an instruction to a tensor.
enum class Access : std::uint8_t {
  read,
  write,   // replaces the old value
  update,  // changes the old value
  arrive   // a message delivers it
};

/// The use of one tensor of a micro-batch by an instruction.
struct Effect {
  Kind kind = Kind::activation;
  int number = 0;  // boundary, or the layer that saves the tensor
  Access access = Access::read;
  int layer = -1;  // the layer that computes; -1: none

  friend constexpr bool operator==(const Effect&, const Effect&) = default;
};

/// Calls visit(effect) for each tensor of its micro-batch that an instruction reads or writes, in the order of use. Both halves of backward
/// count as reading the input and the output of a layer, since layers may read either. Layers that pass no gradient on do nothing in
/// backward_input, and frozen ones in backward_weight.
template <class Visit>
constexpr void for_each_effect(const Instruction& i, const nn::Outline& model, Visit&& visit) {
  if (computes_layers(i.op)) {
    for (int layer = i.first; layer < i.last; ++layer) {
      const bool is_forward = i.op == Op::forward, passes = i.op == Op::backward_input;
      if (passes && !model.passes_gradient(layer)) continue;
      if (i.op == Op::backward_weight && model.layers[as_size(layer)].is_frozen) continue;
      visit(Effect{Kind::activation, layer, Access::read, layer});
      visit(Effect{Kind::activation, layer + 1, is_forward ? Access::write : Access::read, layer});
      if (passes) visit(Effect{Kind::gradient, layer, Access::write, layer});
      if (!is_forward) visit(Effect{Kind::gradient, layer + 1, Access::read, layer});
      // A layer that pauses has begun to write what it saves before.
      const nn::Outline::Layer& of = model.layers[as_size(layer)];
      const bool begins = is_forward && (of.pauses == 0 || (of.is_frozen && !of.exchanges_inside));
      visit(Effect{Kind::saved, layer, begins ? Access::write : is_forward || passes ? Access::update : Access::read, layer});
    }
  } else if (info(i.op).kind == OpKind::pause) {
    const bool is_forward = i.op == Op::forward_to_pause;
    visit(Effect{Kind::activation, i.first, Access::read, i.first});
    if (!is_forward) {
      visit(Effect{Kind::activation, i.first + 1, Access::read, i.first});
      if (model.passes_gradient(i.first)) visit(Effect{Kind::gradient, i.first, Access::write, i.first});
      visit(Effect{Kind::gradient, i.first + 1, Access::read, i.first});
    }
    visit(Effect{Kind::saved, i.first, is_forward && i.pause == 0 ? Access::write : Access::update, i.first});
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

/// Returns whether the layers of an instruction overlap [first, last).
constexpr bool overlaps(const Instruction& i, int first, int last) { return i.first < last && first < i.last; }
/// Returns whether an instruction may read parameters of layers [first, last).
constexpr bool reads_parameters(const Instruction& i, int first, int last) {
  return (i.op == Op::forward || i.op == Op::backward_input || info(i.op).kind == OpKind::pause) && overlaps(i, first, last);
}
/// Returns whether an instruction computes gradients of parameters of layers [first, last).
constexpr bool computes_parameter_gradients(const Instruction& i, int first, int last) {
  return i.op == Op::backward_weight && overlaps(i, first, last);
}
/// Returns whether an instruction reads the gradient at a boundary, to compute with it or to send it.
constexpr bool reads_gradient(const Instruction& i, int boundary) {
  if (i.op == Op::backward_input || i.op == Op::backward_weight || i.op == Op::backward_to_pause)
    return i.first < boundary && boundary <= i.last;
  return i.op == Op::send_start && i.tensor == Tensor::gradient && i.first == boundary;
}

}  // namespace pdp::plan
