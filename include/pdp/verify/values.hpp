#pragma once

#include <cstddef>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan::detail {

/// The activations and gradients at the boundaries of one rank, for all micro-batches, as a rehearsal tracks them. Boundaries with only
/// views between them share one memory, so a write to one of them invalidates the others. Layers that work in place need no tracking:
/// Liveness permits this only if it changes no result of the list.
class RehearsedValues {
 public:
  /// The state of a value, in the order of the enumerators: not there yet; complete; this rank's term of a sum; a term whose sum is in
  /// flight; overwritten by a later value.
  enum class State : char { none, whole, term, summing, spent };

  constexpr RehearsedValues(const nn::Outline& model, int micro_batches)
      : model_{&model}, states_(2 * as_size(micro_batches) * as_size(count()), State::none), travelling_(states_.size(), 0) {
    for (int m = 0; m < micro_batches; ++m)
      for (int b = 0; model.is_input(b); ++b) at(Tensor::activation, m, b) = State::whole;
  }

  [[nodiscard]] constexpr State state(Tensor tensor, int micro_batch, int boundary) const {
    return states_[place(tensor, micro_batch, boundary)];
  }
  [[nodiscard]] constexpr bool is_whole(Tensor tensor, int micro_batch, int boundary) const {
    return state(tensor, micro_batch, boundary) == State::whole;
  }
  /// Returns why a value cannot be used, or null.
  [[nodiscard]] constexpr const char* missing(Tensor tensor, int micro_batch, int boundary) const {
    switch (state(tensor, micro_batch, boundary)) {
      case State::whole:
        return nullptr;
      case State::none:
        return tensor == Tensor::activation ? "needs an activation that is not yet available"
                                            : "needs a gradient that is not yet available";
      case State::spent:
        return "needs an activation or a gradient that has been overwritten";
      default:
        return "needs an activation or a gradient that is not yet summed over the group";
    }
  }

  /// Records that a layer writes a value. Returns why the layer may not write it, or null. `by_view`: the layer is a view, which writes no
  /// memory.
  constexpr const char* give(Tensor tensor, int micro_batch, int boundary, State value, bool by_view) {
    if (!by_view)
      if (const char* reason = overwrite(tensor, micro_batch, boundary); reason != nullptr) return reason;
    at(tensor, micro_batch, boundary) = value;
    return nullptr;
  }
  /// Record messages. A value may be read while it is sent. A received value exists only after the end of the receive.
  constexpr const char* start_receive(Tensor tensor, int micro_batch, int boundary) {
    if (const char* reason = overwrite(tensor, micro_batch, boundary); reason != nullptr) return reason;
    ++travelling(tensor, micro_batch, boundary);
    return nullptr;
  }
  constexpr void end_receive(Tensor tensor, int micro_batch, int boundary) {
    --travelling(tensor, micro_batch, boundary);
    at(tensor, micro_batch, boundary) = State::whole;
  }
  constexpr void start_send(Tensor tensor, int micro_batch, int boundary) { ++travelling(tensor, micro_batch, boundary); }
  constexpr void end_send(Tensor tensor, int micro_batch, int boundary) { --travelling(tensor, micro_batch, boundary); }
  /// Record sums over a group.
  constexpr const char* start_sum(Tensor tensor, int micro_batch, int boundary) {
    if (state(tensor, micro_batch, boundary) != State::term) return "sums a value that is not partial";
    at(tensor, micro_batch, boundary) = State::summing;
    return nullptr;
  }
  constexpr void end_sum(Tensor tensor, int micro_batch, int boundary) {
    spend_all(tensor, micro_batch, boundary);
    at(tensor, micro_batch, boundary) = State::whole;
  }
  /// Returns whether a term is left that has not been added up.
  [[nodiscard]] constexpr bool has_terms() const {
    for (const State each : states_)
      if (each == State::term || each == State::summing) return true;
    return false;
  }

 private:
  [[nodiscard]] constexpr int count() const { return model_->size() + 1; }
  [[nodiscard]] constexpr std::size_t place(Tensor tensor, int micro_batch, int boundary) const {
    return as_size(2 * micro_batch + as_int(tensor)) * as_size(count()) + as_size(boundary);
  }
  constexpr State& at(Tensor tensor, int micro_batch, int boundary) { return states_[place(tensor, micro_batch, boundary)]; }
  [[nodiscard]] constexpr bool is_view(int layer) const { return model_->layers[as_size(layer)].is_view; }
  /// root() and last_view() return the first and the last of the boundaries that share memory with a boundary.
  [[nodiscard]] constexpr int root(int boundary) const {
    while (boundary > 0 && is_view(boundary - 1)) --boundary;
    return boundary;
  }
  [[nodiscard]] constexpr int last_view(int boundary) const {
    while (boundary < model_->size() && is_view(boundary)) ++boundary;
    return boundary;
  }
  /// The number of messages in flight to or from the memory of a boundary.
  constexpr int& travelling(Tensor tensor, int micro_batch, int boundary) {
    return travelling_[place(tensor, micro_batch, root(boundary))];
  }

  constexpr void spend_all(Tensor tensor, int micro_batch, int boundary) {
    for (int other = root(boundary); other <= last_view(boundary); ++other)
      if (State& each = at(tensor, micro_batch, other); each != State::none) each = State::spent;
  }
  constexpr const char* overwrite(Tensor tensor, int micro_batch, int boundary) {
    for (int other = root(boundary); other <= last_view(boundary); ++other)
      if (state(tensor, micro_batch, other) == State::summing) return "overwrites a value that is being summed";
    if (travelling(tensor, micro_batch, boundary) > 0) return "overwrites a value that is in flight";
    spend_all(tensor, micro_batch, boundary);
    return nullptr;
  }

  const nn::Outline* model_;
  std::vector<State> states_;
  std::vector<int> travelling_;
};

}  // namespace pdp::plan::detail
