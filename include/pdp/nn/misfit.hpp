#pragma once

#include <concepts>

#include <pdp/core/shape.hpp>
#include <pdp/nn/layer.hpp>

namespace pdp::nn {

/// Why a layer does not take samples of a shape: it expects another number of something. By default, it takes them.
struct Misfit {
  const char* of = nullptr;  // "channels"; null: the layer takes the samples
  Index expected = 0;
  Index found = 0;
  bool is_least = false;  // whether it would also take a larger number
  bool is_most = false;   // whether it would also take a smaller one

  [[nodiscard]] constexpr explicit operator bool() const { return of != nullptr; }
};

/// A layer that depends on more of a sample's shape than its number of values. misfit(input) returns why it does not take samples of this
/// shape. The shape may be known in part; then the layer reports only what is certain.
template <class L>
concept ChecksShape = Layer<L> && requires(const L& layer, Shape input) {
  { layer.misfit(input) } -> std::same_as<Misfit>;
};

/// Returns why a layer does not take samples of a shape. By default, it must have input_elements() values.
template <Layer L>
constexpr Misfit misfit(const L& layer, const Shape& input) {
  if constexpr (ChecksShape<L>) {
    return layer.misfit(input);
  } else {
    const Index expected = layer.input_elements();
    if (expected == 0) return {};
    if (input.known() && input.elements() != expected) return {"values a sample", expected, input.elements()};
    const Index last = input.last();
    if (!input.rank_is_known() && last != Shape::any && last != expected) return {"values a sample", expected, last};
    return {};
  }
}

/// For a layer that acts on the last dimension, which must have `width` values, or on a whole sample of `width` values if `takes_whole`.
constexpr Misfit misfit_of_last(Index width, const Shape& input, bool takes_whole = true) {
  const Index last = input.last();
  if (last == Shape::any || last == width || (takes_whole && input.known() && input.elements() == width)) return {};
  if (takes_whole && input.known() && width > last) return {"values a sample", width, input.elements()};
  if (input.rank() == 1 || !input.rank_is_known()) return {"values a sample", width, last};
  return {"values in the last dimension", width, last};
}

}  // namespace pdp::nn
