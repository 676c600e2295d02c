#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

/// Whether the plans of all ranks are verified, which takes a time that grows with the square of the world, and memory for what is at
/// each boundary of each rank. Up to 64 ranks they always are; above, if it takes at most about a second and 100 MB. Otherwise each rank
/// checks the numbers in its own plan only.
[[nodiscard]] bool verifies_all(int ranks, const plan::Plan& own, const nn::Outline& model);

/// Returns a rank's plan. Throws PlanError if it, or the plans of all ranks together, cannot run.
[[nodiscard]] plan::Plan checked_plan(strategy::StrategyRef strategy, const nn::Outline& model, const plan::GradientPolicy& policy,
                                      plan::RankInWorld at);

/// Returns the most rows of a rank's share of a step. Throws ConfigError if the global batch is no number of samples.
[[nodiscard]] Index share_of(const TrainerOptions& options, data::Shard share);

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/checked_plan.hpp>
#endif
