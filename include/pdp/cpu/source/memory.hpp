#pragma once

/// Definitions for pdp/cpu/memory.hpp; see pdp/core/separate_compilation.hpp.

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/machine_memory.hpp>
#include <pdp/cpu/memory.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

PDP_INLINE void detail::refuse_memory(Index elements, std::size_t element_bytes) {
  const Index all = machine_memory();
  throw DeviceError{text("this machine cannot allocate ", as_size(elements) * element_bytes, " bytes for one array",
                         all > 0 ? text("; it has ", all, " bytes of memory") : std::string{},
                         "; use a smaller batch, or spread the model over more machines")};
}

template <std::floating_point T>
void fill_uniform(const Cpu&, random::Key key, double bound, const random::Elements& elements, std::span<T> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random::uniform_between<T>(key, bound, elements[as_index(i)]);
}

PDP_INLINE void scale_loss(const Cpu&, StepNumbers* numbers, const StepHistory* history) { pdp::scale_loss(*numbers, *history); }
PDP_INLINE void apply_gradient_rule(const Cpu&, StepNumbers* numbers, StepHistory* history, const GradientRule& rule) {
  pdp::apply_gradient_rule(*numbers, *history, rule);
}

}  // namespace pdp::cpu
