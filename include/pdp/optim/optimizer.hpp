#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>

#include <pdp/core/cast.hpp>
#include <pdp/core/copyable.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/step_state.hpp>

namespace pdp::optim {

using pdp::constants;
using pdp::StepInfo;

/// An elementwise rule that updates a parameter from its gradient (the mean over the global batch) and from its own state, zero at first.
///
/// The rule is written once, as a template over a vector type V: a few lanes on a CPU, one element in a GPU thread. It may use + - * / with
/// vectors and numbers, sqrt, and the functions of optim/functions.hpp. `State<V>` holds only vectors; a device stores it only for the
/// elements that this rank updates. Values that depend on the step alone go into constants(StepInfo), an optional member. update() then
/// gets its result instead of the StepInfo.
template <class O>
concept Optimizer = Copyable<O> &&
    requires(const O& rule, float& parameter, float gradient, typename O::template State<float>& state, const StepInfo& step) {
  requires std::is_trivially_copyable_v<typename O::template State<float>>;
  requires requires { rule.update(parameter, gradient, state, step); } || requires {
    rule.update(parameter, gradient, state, rule.constants(step));
  };
};

/// The number of state values that a rule of that type may keep for each parameter.
template <Optimizer O>
constexpr std::size_t state_fields = [] {
  using State = typename O::template State<float>;
  if constexpr (std::is_empty_v<State>)
    return std::size_t{0};
  else
    return sizeof(State) / sizeof(float);
}();

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

/// Returns the name of a state value in files: that of the rule's optional member state_names, which for pdp's own rules are PyTorch's
/// names, else "state_" and its number.
template <Optimizer O>
[[nodiscard]] std::string state_name(int field) {
  if constexpr (requires { O::state_names; }) {
    static_assert(std::size(O::state_names) == state_fields<O>,
                  "pdp: state_names of an optimizer needs a name for each member of its State");
    return O::state_names[as_size(field)];
  } else {
    return text("state_", field);
  }
}

}  // namespace pdp::optim
