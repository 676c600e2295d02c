#pragma once

#include <concepts>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/strategy/strategy.hpp>

namespace pdp::strategy {

namespace detail {

/// Returns the plan of a strategy that a StrategyRef borrows. src/core compiles it once for each of pdp's strategies.
template <class S>
Plan plan_of(const void* strategy, const Outline& model, RankInWorld at) {
  return static_cast<const S*>(strategy)->plan(model, at);
}

}  // namespace detail

/// A reference to a strategy of any type, for code that is compiled once for all of them. Borrows the strategy.
class StrategyRef {
 public:
  template <class S>
  requires(!std::same_as<S, StrategyRef>) && Strategy<S> StrategyRef(const S& strategy)
      : strategy_{&strategy},
  plan_{&detail::plan_of<S>} {}

  [[nodiscard]] Plan plan(const Outline& model, RankInWorld at) const { return plan_(strategy_, model, at); }

 private:
  const void* strategy_;
  Plan (*plan_)(const void* strategy, const Outline& model, RankInWorld at);
};

static_assert(Strategy<StrategyRef>);

/// Returns the plans of a strategy for all ranks of a world. Adds the norm of the gradient if the policy needs it.
[[nodiscard]] std::vector<Plan> plans_for(const GradientPolicy& policy, StrategyRef strategy, const Outline& model, int ranks);

}  // namespace pdp::strategy

#ifndef PDP_SEPARATE_CORE
#include <pdp/strategy/source/strategy_ref.hpp>
#endif
