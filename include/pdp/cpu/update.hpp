#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Applies an optimizer's rule to `parameters` in one pass; does nothing if numbers->skips. The gradient is the sum of the arrays at
/// `gradients`, added in that order, times gradient_factor(). There is at least one array, and each is as long as `parameters`. Also
/// writes the new parameters to `copies`, rounded to their type. `state` holds Fields numbers for each parameter, field after field; it is
/// empty if the rule keeps none. Denormals count as zero throughout.
template <std::size_t Fields, class T, class Rule, class Copy = T>
void update(const Cpu& cpu, const Rule& rule, const StepNumbers* numbers, std::span<T> parameters, std::span<const T* const> gradients,
            std::span<T> state, std::span<Copy* const> copies = {}) {
  if (numbers->skips) return;
  const auto step = constants(rule, numbers->info);
  const T factor = static_cast<T>(gradient_factor<Rule>(*numbers));
  const auto count = as_index(parameters.size());
  const bool keeps = !state.empty();
  const auto of_some = [=]<class V>(Index i, auto io) {
    using State = typename Rule::template State<V>;
    std::array<V, Fields> fields{};
    T* const states = keeps ? state.data() + i : nullptr;
    if (keeps)
      for (Index k = 0; V & field : fields) field = io.load(states + count * k++);
    V w = io.load(parameters.data() + i);
    V gradient = io.load(gradients.front() + i);
    for (const T* const more : gradients.subspan(1)) gradient = gradient + io.load(more + i);
    gradient = gradient * factor;
    static_assert(Fields == 0 || sizeof(State) == sizeof fields);
    if constexpr (Fields > 0) {  // State holds only vectors
      rule.update(w, gradient, *reinterpret_cast<State*>(fields.data()), step);
    } else {
      State none{};
      rule.update(w, gradient, none, step);
    }
    io.store(w, parameters.data() + i);
    for (Copy* const copy : copies) io.store(w, copy + i);
    if (keeps)
      for (Index k = 0; const V& field : fields) io.store(field, states + count * k++);
  };
  in_parts(cpu, count, least_costly_part, [&](Index begin, Index end) {
    const FlushDenormals guard;
    elementwise<T>(cpu, begin, end, of_some);
  });
}

}  // namespace pdp::cpu
