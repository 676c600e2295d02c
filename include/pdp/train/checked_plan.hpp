#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

/// Returns whether to verify the plans of all ranks. Verification takes time quadratic in the number of ranks, and memory for each boundary
/// of each rank. Up to 64 ranks are always verified, up to 1,024 ranks if that takes at most about a second and 100 MB. Otherwise each rank
/// checks only the numbers in its own plan.
[[nodiscard]] bool verifies_all(int ranks, const plan::Plan& own, const nn::Outline& model);

/// Returns the plan of rank `at.rank`. Throws PlanError if this plan, or the plans of all ranks together, cannot run.
[[nodiscard]] plan::Plan checked_plan(strategy::StrategyRef strategy, const nn::Outline& model, const plan::GradientPolicy& policy,
                                      plan::RankInWorld at);

/// Returns the largest number of rows in a rank's share of a step. Throws ConfigError if the global batch is less than 1 or greater than
/// TrainerOptions::most_samples.
[[nodiscard]] Index share_of(const TrainerOptions& options, data::Shard share);

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/checked_plan.hpp>
#endif
