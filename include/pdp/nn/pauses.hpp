#pragma once

#include <algorithm>

#include <pdp/nn/layer.hpp>

/// Layers that pause: the ranks add up some numbers, and the layers go on. BatchNorm pauses for its sums over the batch. A block inside a
/// layer such as Residual also pauses for the exchanges of divided layers.
namespace pdp::nn {

/// The numbers that ranks add up in a pause.
enum class SummedOver : unsigned char {
  nothing,  // nothing: the pause is for the other direction
  batch,    // numbers of State::batch_sums, over the ranks that have other rows
  parts     // a tensor, over the ranks that have the other parts of divided layers
};
struct PauseSum {
  SummedOver over = SummedOver::nothing;
  Index first = 0, count = 0;  // over the batch: which numbers; over parts: `count` values of each sample
};

/// A layer with pauses() pauses in forward, and as many in backward. sums_of_pause(input, pause, backward) says what the ranks add up in
/// one of them, for samples of shape `input`. State::batch_sums points to batch_sums() numbers, those of all pauses.
///
/// forward_part(..., part) computes from pause part - 1 to pause `part`, before which it has written its own sums; backward_part does so in
/// backward, and counts pauses in its own order. Parts are from 0 to pauses() - 1. The rest, behind the last pause, is forward and
/// backward_input. An evaluation, or a frozen layer in a step, pauses only in a layer of which exchanges() is true, and does not add up
/// over the batch. Otherwise, forward and backward_input compute all.
template <class L>
concept Pauses = Layer<L> && requires(const L& layer, Index pause, bool backward, Shape input) {
  { layer.pauses() } -> std::same_as<Index>;
  { layer.batch_sums() } -> std::same_as<Index>;
  { layer.sums_of_pause(input, pause, backward) } -> std::same_as<PauseSum>;
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
constexpr PauseSum sums_of_pause(const L& layer, const Shape& input, Index pause, bool backward) {
  if constexpr (Pauses<L>)
    return layer.sums_of_pause(input, pause, backward);
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

/// A layer that pauses for the exchanges of divided layers inside it. exchanges() says whether there are any.
/// exchanged(input, rows, gradient_x, saved, pause, backward) returns the tensor that the ranks add up in a pause over parts. inner_part()
/// returns the rank's part of the divided layers.
template <class L>
concept ExchangesInside = Pauses<L> && requires(const L& layer) {
  { layer.exchanges() } -> std::same_as<bool>;
  { layer.inner_part() } -> std::same_as<Part>;
};
template <Layer L>
constexpr bool exchanges(const L& layer) {
  if constexpr (ExchangesInside<L>)
    return layer.exchanges();
  else
    return false;
}

/// Whether a layer that pauses may add up over the batch. A layer that does not declares `static constexpr bool sums_over_batch = false`.
template <class L>
constexpr bool sums_over_batch = [] {
  if constexpr (requires { L::sums_over_batch; })
    return L::sums_over_batch;
  else
    return Pauses<L>;
}();

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

/// Whether a TypeList holds a layer that may pause, or one that may add up over the batch.
template <class List>
constexpr bool any_pauses = false;
template <template <class...> class List, class... L>
constexpr bool any_pauses<List<L...>> = (Pauses<L> || ...);
template <class List>
constexpr bool any_sums_over_batch = false;
template <template <class...> class List, class... L>
constexpr bool any_sums_over_batch<List<L...>> = (sums_over_batch<L> || ...);

}  // namespace pdp::nn
