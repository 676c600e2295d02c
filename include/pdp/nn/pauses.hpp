#pragma once

#include <algorithm>

#include <pdp/nn/layer.hpp>

/// Layers that pause: they compute some sums over their rows, the ranks add these up, and the layers go on. BatchNorm does so, and a block
/// with such a layer inside.
namespace pdp::nn {

/// Some of the numbers that a layer adds up over the batch: those of one pause.
struct SumRange {
  Index first = 0, count = 0;
};

/// A layer with pauses() pauses in forward, and as many in backward. State::batch_sums points to batch_sums() numbers, of which
/// sums_of_pause(pause, backward) are added up over the ranks in a pause.
///
/// forward_part(..., part) computes from pause part - 1 to pause `part`, before which it has written its own sums; backward_part does so in
/// backward, and counts pauses in its own order. Parts are from 0 to pauses() - 1. The rest, behind the last pause, is forward and
/// backward_input. In an evaluation nothing pauses, and forward computes all.
template <class L>
concept Pauses = Layer<L> && requires(const L& layer, Index pause, bool backward, Shape input) {
  { layer.pauses() } -> std::same_as<Index>;
  { layer.batch_sums() } -> std::same_as<Index>;
  { layer.sums_of_pause(pause, backward) } -> std::same_as<SumRange>;
  { layer.batch_values(input) } -> std::same_as<Index>;       // of a sample, in the sum of fewest values; 0: no pauses
  { layer.pauses_in_micro_batches() } -> std::same_as<bool>;  // whether sums over a micro-batch in place of the whole batch will do
};

/// Return the same for any layer; others have no pauses.
template <Layer L>
constexpr Index pauses(const L& layer) {
  if constexpr (Pauses<L>)
    return layer.pauses();
  else
    return 0;
}
template <Layer L>
constexpr Index batch_sums(const L& layer) {
  if constexpr (Pauses<L>)
    return layer.batch_sums();
  else
    return 0;
}
template <Layer L>
constexpr SumRange sums_of_pause(const L& layer, Index pause, bool backward) {
  if constexpr (Pauses<L>)
    return layer.sums_of_pause(pause, backward);
  else
    return {};
}
template <Layer L>
constexpr Index batch_values(const L& layer, const Shape& input) {
  if constexpr (Pauses<L>)
    return layer.batch_values(input);
  else
    return 0;
}
template <Layer L>
constexpr bool pauses_in_micro_batches(const L& layer) {
  if constexpr (Pauses<L>)
    return layer.pauses_in_micro_batches();
  else
    return true;
}

/// Runs a part of forward: part 0 to pauses() - 1, or the rest, part pauses().
template <Layer L, class D, class T, class X>
void forward_part(const L& layer, const D& device, const State<T>& state, Matrix<const X> x, Matrix<T> y, T* saved, Index part) {
  if constexpr (Pauses<L>)
    if (part < layer.pauses()) return layer.forward_part(device, state, x, y, saved, part);
  static_cast<void>(part);
  layer.forward(device, state, x, y, saved);
}
/// Does the same for backward.
template <Layer L, class D, class T>
void backward_part(const L& layer, const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                   Matrix<T> gradient_x, T* saved, Index part) {
  if constexpr (Pauses<L>)
    if (part < layer.pauses()) return layer.backward_part(device, state, x, y, gradient_y, gradient_x, saved, part);
  static_cast<void>(part);
  layer.backward_input(device, state, x, y, gradient_y, gradient_x, saved);
}

/// Whether a TypeList holds a layer that may pause.
template <class List>
constexpr bool any_pauses = false;
template <template <class...> class List, class... L>
constexpr bool any_pauses<List<L...>> = (Pauses<L> || ...);

}  // namespace pdp::nn
