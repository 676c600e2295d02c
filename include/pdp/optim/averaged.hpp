#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <pdp/optim/grouped.hpp>
#include <pdp/optim/optimizer.hpp>

namespace pdp::optim {

namespace detail {

/// The names of an optimizer's state values in files, followed by that of the average.
template <class Rule>
constexpr auto names_with_average() {
  constexpr std::array numbered{"state_0", "state_1", "state_2", "state_3", "state_4", "state_5", "state_6", "state_7"};
  constexpr std::size_t count = state_fields<Rule>;
  static_assert(count <= numbered.size(), "pdp: optim::Averaged needs the member state_names of an optimizer with so many state values");
  std::array<const char*, count + 1> names{};
  for (std::size_t field = 0; field < count; ++field) {
    if constexpr (requires { Rule::state_names; })
      names[field] = Rule::state_names[field];
    else
      names[field] = numbered[field];
  }
  names[count] = "average";
  return names;
}

}  // namespace detail

/// An optimizer that also keeps an exponential moving average of each parameter: after the first update the parameter itself, later
/// decay * average + (1 - decay) * parameter. Polyak, Juditsky, "Acceleration of stochastic approximation by averaging", 1992. With the
/// averages in their place (see pdp::with_averages), models often generalise better.
///
/// The average is one more value of the optimizer's state, so it is sharded and saved like the rest of it.
template <class Rule>
struct Averaged {
  static_assert(Optimizer<Rule>, "pdp: the first member of optim::Averaged must be an optimizer (see optim/optimizer.hpp)");

  Rule rule{};
  float decay = 0.999f;  // 0 to 1

  template <class V>
  struct State {
    [[no_unique_address]] typename Rule::template State<V> rule;
    V average;
  };
  static constexpr auto state_names = detail::names_with_average<Rule>();

  struct Constants {
    decltype(pdp::constants(std::declval<const Rule&>(), StepInfo{})) rule;
    float kept;  // factor of the average so far
  };
  template <class Real = double>  // a template, so that device code may call it
  [[nodiscard]] constexpr Constants constants(const StepInfo& step) const {
    return {pdp::constants(rule, step), step.number <= 1 ? 0.0f : decay};
  }

  template <class V>
  constexpr void update(V& w, const V& g, State<V>& state, const Constants& step) const {
    rule.update(w, g, state.rule, step.rule);
    state.average = step.kept * state.average + (1 - step.kept) * w;
  }

  /// For parameter groups.
  [[nodiscard]] constexpr Averaged scaled(float lr_factor, float decay_factor) const
      requires(detail::ScalesItself<Rule> || detail::HasRateAndDecay<Rule>) {
    return {optim::scaled(rule, {.lr_factor = lr_factor, .decay_factor = decay_factor}), decay};
  }
};
template <class Rule>
Averaged(Rule) -> Averaged<Rule>;
template <class Rule>
Averaged(Rule, float) -> Averaged<Rule>;

namespace detail {

template <class O>
inline constexpr bool is_averaged = false;
template <class Rule>
inline constexpr bool is_averaged<Averaged<Rule>> = true;

}  // namespace detail

/// Whether an optimizer keeps averages. The last value of its state is then the average.
template <class O>
inline constexpr bool has_averages = detail::is_averaged<RuleOf<O>>;

}  // namespace pdp::optim
