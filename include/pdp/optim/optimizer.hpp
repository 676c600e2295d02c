#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <pdp/core/step_state.hpp>

namespace pdp::optim {

using pdp::constants;
using pdp::StepInfo;

/// An elementwise rule that updates a parameter from its gradient (the mean over the global batch) and from its own state, zero at first.
///
/// The rule is written once, as a template over a vector type V: a few lanes on a CPU, one element in a GPU thread. It may use + - * / with
/// vectors and numbers, and sqrt. `State<V>` holds only vectors; a device stores it only for the elements that this rank updates. Values
/// that depend on the step alone go into constants(StepInfo), an optional member. update() then gets its result instead of the StepInfo.
template <class O>
concept Optimizer = std::copyable<O> &&
    requires(const O& rule, float& parameter, float gradient, typename O::template State<float>& state, const StepInfo& step) {
  requires std::is_trivially_copyable_v<typename O::template State<float>>;
  requires requires { rule.update(parameter, gradient, state, step); } || requires {
    rule.update(parameter, gradient, state, rule.constants(step));
  };
};

/// The number of state values that a rule of that type may keep for each parameter.
template <Optimizer O>
constexpr std::size_t state_fields = std::is_empty_v<typename O::template State<float>>
                                         ? 0
                                         : sizeof(typename O::template State<float>) / sizeof(float);

/// Returns how many state values for each parameter this rule needs: none if its optional member keeps_state() returns false, as for Sgd
/// without momentum. Its State is then zero in every update.
template <Optimizer O>
constexpr std::size_t needed_state_fields(const O& rule) {
  if constexpr (requires {
                  { rule.keeps_state() } -> std::same_as<bool>;
                })
    return rule.keeps_state() ? state_fields<O> : 0;
  return state_fields<O>;
}

}  // namespace pdp::optim
