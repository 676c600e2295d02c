#pragma once

#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/wrong_argument.hpp>
#include <pdp/strategy/strategy.hpp>

/// The requirements of the concept strategy::Strategy, one static_assert for each.
namespace pdp::strategy::detail {

template <class S>
struct MakePlan {
  template <class... A, class Self = const S&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().plan(std::forward<A>(arguments)...));
};

template <class S>
struct StrategyRequirements {
  static constexpr int plan = pdp::detail::wrong_argument<MakePlan<S>>(pdp::detail::Types<const Outline&, RankInWorld&>{},
                                                                       pdp::detail::Types<Outline&, int, RankInWorld&>{});
  /// Whether the type is probably meant to be a strategy: it has a member `plan`.
  static constexpr bool resembles = plan >= 0 || requires { &S::plan; };
  static constexpr bool any = !resembles || Strategy<S>;

  static_assert(any || Copyable<S>, "pdp: this strategy cannot be copied");
  static_assert(any || plan != 1, "pdp: plan of this strategy: argument 1, the model, must be `const nn::Outline& model`");
  static_assert(any || plan != 2,
                "pdp: plan of this strategy: argument 2, the rank and the number of ranks, must be `plan::RankInWorld at`");
  static_assert(any || plan >= 0,
                "pdp: this strategy needs the function `plan::Plan plan(const nn::Outline& model, plan::RankInWorld at) const`; it is not "
                "const, or takes other arguments");
  static_assert(any || plan != 0, "pdp: plan of this strategy must return plan::Plan");
};

}  // namespace pdp::strategy::detail
