#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include <pdp/core/view.hpp>
#include <pdp/host/lanes.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

namespace detail {

/// Applies the rule to up to N elements that lie at the given places. `field(k)`: the k-th number of state of the first element.
template <int N, std::size_t Fields, class T, class Rule, class Step, class Field>
void update_lanes(const Rule& rule, const Step& step, T* parameters, const T* gradients, const Field& field, int count) {
  using V = Lanes<T, N>;
  using State = typename Rule::template State<V>;
  const auto load = [count](const T* from) {
    V lanes{};
    std::copy_n(from, count, lanes.lane);
    return lanes;
  };
  std::array<V, Fields> stored{};
  for (std::size_t k = 0; k < Fields; ++k) stored[k] = load(field(k));
  V w = load(parameters);
  State state;
  if constexpr (Fields > 0) state = std::bit_cast<State>(stored);
  rule.update(w, load(gradients), state, step);
  if constexpr (Fields > 0) stored = std::bit_cast<std::array<V, Fields>>(state);
  std::copy_n(w.lane, count, parameters);
  for (std::size_t k = 0; k < Fields; ++k) std::copy_n(stored[k].lane, count, field(k));
}

}  // namespace detail

/// One pass of an optimizer's rule over parameters and gradients of equal number. `state`: Fields numbers for each, field after field.
/// `step`: what the rule wants to know of it.
template <std::size_t Fields, class T, class Rule, class Step>
void update(const Cpu&, const Rule& rule, const Step& step, std::span<T> parameters, std::span<const T> gradients, std::span<T> state) {
  constexpr int lanes = 32 / static_cast<int>(sizeof(T));
  const std::size_t count = parameters.size(), whole = count - count % lanes;
  const auto at = [&](std::size_t i) { return [&state, count, i](std::size_t k) { return state.data() + k * count + i; }; };
  for (std::size_t i = 0; i < whole; i += lanes)
    detail::update_lanes<lanes, Fields>(rule, step, parameters.data() + i, gradients.data() + i, at(i), lanes);
  if (whole < count)
    detail::update_lanes<lanes, Fields>(rule, step, parameters.data() + whole, gradients.data() + whole, at(whole),
                                        static_cast<int>(count - whole));
}

}  // namespace pdp::host
