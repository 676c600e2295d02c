#pragma once

/// Definitions for pdp/strategy/strategy_ref.hpp; see pdp/core/separate_compilation.hpp.

#include <utility>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/ties.hpp>
#include <pdp/strategy/strategy_ref.hpp>

namespace pdp::strategy {

PDP_INLINE std::vector<Plan> plans_for(const GradientPolicy& policy, StrategyRef strategy, const Outline& model, int ranks) {
  std::vector<Plan> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankInWorld at{rank, ranks};
    all.push_back(plan_for(policy, with_ties(model, with_pauses(model, strategy.plan(model, at)), at)));
  }
  return all;
}

}  // namespace pdp::strategy
