#pragma once

/// Definitions for pdp/train/checked_plan.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/ties.hpp>
#include <pdp/train/checked_plan.hpp>
#include <pdp/verify/verify.hpp>

namespace pdp::detail {

PDP_INLINE bool verifies_all(int ranks, const plan::Plan& own, const nn::Outline& model) {
  constexpr int always = 64, most = 1024;
  constexpr Index most_values = Index{1} << 23;
  return ranks <= always || (ranks <= most && Index{ranks} * own.micro_batches * (model.size() + 1) <= most_values);
}

PDP_INLINE plan::Plan checked_plan(strategy::StrategyRef strategy, const nn::Outline& model, const plan::GradientPolicy& policy,
                                   plan::RankInWorld at) {
  policy.check();
  plan::Plan plan = plan::plan_for(policy, plan::with_ties(model, plan::with_pauses(model, strategy.plan(model, at)), at));
  if (const plan::Verdict verdict = plan::verify_numbers(model, plan, at.rank); !verdict) throw PlanError{plan::explain(verdict, plan)};
  if (verifies_all(at.size, plan, model)) {
    const auto plans = strategy::plans_for(policy, strategy, model, at.size);
    if (const plan::Verdict verdict = plan::verify(model, plans); !verdict) throw PlanError{plan::explain(verdict, plans)};
  }
  return plan;
}

PDP_INLINE Index share_of(const TrainerOptions& options, data::Shard share) {
  if (options.global_batch < 1 || options.global_batch > TrainerOptions::most_samples)
    throw ConfigError{text("global_batch = ", options.global_batch, " was given; it must be from 1 to ", TrainerOptions::most_samples,
                           ", as in {.global_batch = 256}")};
  return (options.global_batch + share.count - 1) / share.count;
}

}  // namespace pdp::detail
