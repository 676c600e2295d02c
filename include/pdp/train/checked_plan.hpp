#pragma once

#include <pdp/core/error.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/train/options.hpp>
#include <pdp/verify/verify.hpp>

namespace pdp::detail {

/// Whether the plans of all ranks are verified, which takes a time that grows with the square of the world, and memory for what is at
/// each boundary of each rank. Up to 64 ranks they always are; above, if it takes at most about a second and 100 MB. Otherwise each rank
/// checks the numbers in its own plan only.
constexpr bool verifies_all(int ranks, const plan::Plan& own, const nn::Outline& model) {
  constexpr int always = 64, most = 1024;
  constexpr Index most_values = Index{1} << 23;
  return ranks <= always || (ranks <= most && Index{ranks} * own.micro_batches * (model.size() + 1) <= most_values);
}

/// Returns a rank's plan. Throws PlanError if it, or the plans of all ranks together, cannot run.
template <strategy::Strategy S>
plan::Plan checked_plan(const S& strategy, const nn::Outline& model, const plan::GradientPolicy& policy, plan::RankInWorld at) {
  policy.check();
  plan::Plan plan = plan::plan_for(policy, strategy.plan(model, at));
  if (const plan::Verdict verdict = plan::verify_numbers(model, plan, at.rank); !verdict) throw PlanError{plan::explain(verdict, plan)};
  if (verifies_all(at.size, plan, model)) {
    const auto plans = strategy::plans_for(policy, strategy, model, at.size);
    if (const plan::Verdict verdict = plan::verify(model, plans); !verdict) throw PlanError{plan::explain(verdict, plans)};
  }
  return plan;
}

/// Returns the most rows of a rank's share of a step. Throws ConfigError if the global batch is no number of samples.
inline Index share_of(const TrainerOptions& options, data::Shard share) {
  if (options.global_batch < 1 || options.global_batch > TrainerOptions::most_samples)
    throw ConfigError{text("a global batch of ", options.global_batch, " samples was asked for; it takes at least 1, and at most ",
                           TrainerOptions::most_samples, ", as in {.global_batch = 256}")};
  return (options.global_batch + share.count - 1) / share.count;
}

}  // namespace pdp::detail
