#pragma once

#include <cstddef>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::plan::detail {

/// What is at the boundaries of one rank, as far as a rehearsal knows: activations and gradients of all micro-batches. Boundaries between
/// which only views lie are one memory, so that what is written to one of them is no longer at the others. Of layers that work in place it
/// knows nothing, as Liveness lets them do so only where no list can tell.
class RehearsedValues {
 public:
  /// Nothing yet; the value; this rank's term of it; that, while it is added to the others'; what has been overwritten by what came later.
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
  /// Why a value cannot be used; null where it can.
  [[nodiscard]] constexpr const char* missing(Tensor tensor, int micro_batch, int boundary) const {
    switch (state(tensor, micro_batch, boundary)) {
      case State::whole:
        return nullptr;
      case State::none:
        return tensor == Tensor::activation ? "needs an activation that is not there yet" : "needs a gradient that is not there yet";
      case State::spent:
        return "needs an activation or a gradient whose memory holds what came later";
      default:
        return "needs an activation or a gradient whose terms have not been added up";
    }
  }

  /// A layer gives a value. Why it may not; null where it may.
  constexpr const char* give(Tensor tensor, int micro_batch, int boundary, State value, bool by_view) {
    if (!by_view)
      if (const char* reason = overwrite(tensor, micro_batch, boundary); reason != nullptr) return reason;
    at(tensor, micro_batch, boundary) = value;
    return nullptr;
  }
  /// Messages: what is sent may be read, and what is received is there in the end only.
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
  /// Sums.
  constexpr const char* start_sum(Tensor tensor, int micro_batch, int boundary) {
    if (state(tensor, micro_batch, boundary) != State::term) return "adds up what is no term of a sum";
    at(tensor, micro_batch, boundary) = State::summing;
    return nullptr;
  }
  constexpr void end_sum(Tensor tensor, int micro_batch, int boundary) {
    spend_all(tensor, micro_batch, boundary);
    at(tensor, micro_batch, boundary) = State::whole;
  }
  /// Whether a term is left that has not been added up.
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
  [[nodiscard]] constexpr int root(int boundary) const {
    while (boundary > 0 && is_view(boundary - 1)) --boundary;
    return boundary;
  }
  [[nodiscard]] constexpr int last_view(int boundary) const {
    while (boundary < model_->size() && is_view(boundary)) ++boundary;
    return boundary;
  }
  /// How many messages travel to or from the memory of a boundary.
  constexpr int& travelling(Tensor tensor, int micro_batch, int boundary) {
    return travelling_[place(tensor, micro_batch, root(boundary))];
  }

  constexpr void spend_all(Tensor tensor, int micro_batch, int boundary) {
    for (int other = root(boundary); other <= last_view(boundary); ++other)
      if (State& each = at(tensor, micro_batch, other); each != State::none) each = State::spent;
  }
  constexpr const char* overwrite(Tensor tensor, int micro_batch, int boundary) {
    for (int other = root(boundary); other <= last_view(boundary); ++other)
      if (state(tensor, micro_batch, other) == State::summing) return "overwrites what is being added up";
    if (travelling(tensor, micro_batch, boundary) > 0) return "overwrites what a message carries";
    spend_all(tensor, micro_batch, boundary);
    return nullptr;
  }

  const nn::Outline* model_;
  std::vector<State> states_;
  std::vector<int> travelling_;
};

}  // namespace pdp::plan::detail
