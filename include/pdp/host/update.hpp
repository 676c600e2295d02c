#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include <pdp/core/view.hpp>
#include <pdp/host/elementwise.hpp>
#include <pdp/host/tag.hpp>

namespace pdp::host {

/// One pass of an optimizer's rule over parameters and gradients of equal number. `state`: Fields numbers for each, field after field; or
/// nothing, where the rule needs to keep none. `step`: what the rule wants to know of it.
template <std::size_t Fields, class T, class Rule, class Step>
void update(const Cpu& cpu, const Rule& rule, const Step& step, std::span<T> parameters, std::span<const T> gradients, std::span<T> state) {
  const FlushDenormals guard;
  const auto count = static_cast<Index>(parameters.size());
  const bool keeps = !state.empty();
  elementwise<T>(cpu, count, [=]<class V>(Index i, auto io) {
    using State = typename Rule::template State<V>;
    std::array<V, Fields> fields{};
    T* const states = state.data() + i;
    if (keeps)
      for (Index k = 0; V & field : fields) field = io.load(states + count * k++);
    V w = io.load(parameters.data() + i);
    const V gradient = io.load(gradients.data() + i);
    State own{};
    if constexpr (Fields > 0) own = std::bit_cast<State>(fields);
    rule.update(w, gradient, own, step);
    io.store(w, parameters.data() + i);
    if constexpr (Fields > 0) fields = std::bit_cast<std::array<V, Fields>>(own);
    if (keeps)
      for (Index k = 0; const V& field : fields) io.store(field, states + count * k++);
  });
}

}  // namespace pdp::host
