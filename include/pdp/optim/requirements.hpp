#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/wrong_argument.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>

/// The requirements of the concepts optim::Optimizer and optim::Schedule, one static_assert for each.
namespace pdp::optim::detail {

template <class O>
struct Update {
  template <class... A, class Self = const O&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().update(std::forward<A>(arguments)...));
};

template <class O>
struct OptimizerRequirements {
  static constexpr bool has_state = requires { typename O::template State<float>; };
  template <class Rule>
  static constexpr bool has_update = requires {
    &Rule::template update<float>;
  }
  || requires { &Rule::update; };
  /// Whether the type tries to be an optimizer.
  static constexpr bool resembles = has_state || has_update<O>;
  static constexpr bool any = !resembles || Optimizer<O>;

  static_assert(any || Copyable<O>, "pdp: this optimizer cannot be copied");
  static_assert(
      any || has_state,
      "pdp: this optimizer needs the template `template <class V> struct State`: its state for each parameter, which may be empty");

  static constexpr bool is_trivial() {
    if constexpr (has_state) return std::is_trivially_copyable_v<typename O::template State<float>>;
    return true;
  }
  static_assert(any || is_trivial(), "pdp: State of this optimizer may hold vectors V and nothing else");

  static constexpr int wrong_argument() {
    if constexpr (has_state && !any) {
      using State = typename O::template State<float>;
      const auto wrong = []<class Step>(std::type_identity<Step>) {
        return pdp::detail::wrong_argument<Update<O>>(pdp::detail::Types<float&, float&, State&, Step>{},
                                                      pdp::detail::Types<float, const float&, double&, float*, State*, StepInfo&>{});
      };
      if constexpr (requires(const O& rule, const StepInfo& step) { rule.constants(step); })
        return wrong(std::type_identity<decltype(std::declval<const O&>().constants(std::declval<const StepInfo&>()))>{});
      else
        return wrong(std::type_identity<const StepInfo&>{});
    }
    return 0;
  }
  static constexpr int update = wrong_argument();
  static_assert(update != 1, "pdp: update of this optimizer: argument 1, the parameter, must be `V& parameter`");
  static_assert(update != 2, "pdp: update of this optimizer: argument 2, the gradient, must be `V gradient`");
  static_assert(update != 3, "pdp: update of this optimizer: argument 3, the state, must be `State<V>& state`");
  static_assert(update != 4,
                "pdp: update of this optimizer: argument 4, the step, must be `const StepInfo& step`, or the result of constants(step)");
  static_assert(update >= 0,
                "pdp: this optimizer needs the function `template <class V> void update(V& parameter, V gradient, State<V>& state, const "
                "StepInfo& step) const`; it is missing, not const, or takes other arguments");
};

template <class S>
struct ScheduleRequirements {
  static constexpr bool resembles = requires(const S& schedule, std::int64_t step) { schedule.factor(step); }
  || requires { &S::factor; };
  static constexpr bool any = !resembles || Schedule<S>;
  static_assert(any || Copyable<S>, "pdp: this learning-rate schedule cannot be copied");
  static_assert(
      any || requires(const S& schedule, std::int64_t step) { schedule.factor(step); },
      "pdp: factor of this learning-rate schedule must be const, with one argument, `std::int64_t step`");
  static_assert(
      any || !requires(const S& schedule, std::int64_t step) { schedule.factor(step); } ||
          requires(const S& schedule, std::int64_t step) {
            { schedule.factor(step) } -> std::same_as<float>;
          },
      "pdp: factor of this learning-rate schedule must return float");
};

}  // namespace pdp::optim::detail
