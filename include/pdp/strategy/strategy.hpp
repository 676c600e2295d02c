#pragma once

#include <concepts>
#include <vector>

#include <pdp/core/copyable.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/plan/pauses.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>

namespace pdp::strategy {

// Strategies are written with the names of pdp::plan.
using namespace plan;

/// A way to spread training over ranks: a spec of sizes, without a communicator. plan(model, at) is a pure function that returns the plan
/// of one rank. pdp's strategies throw ConfigError if an option is not valid, or does not fit the model or the world.
template <class S>
concept Strategy = Copyable<S> && requires(const S& strategy, const Outline& model, RankInWorld at) {
  { strategy.plan(model, at) } -> std::same_as<Plan>;
};

/// Returns the plans of a strategy for all ranks of a world.
template <Strategy S>
constexpr std::vector<Plan> plans(const S& strategy, const Outline& model, int ranks) {
  std::vector<Plan> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(strategy.plan(model, {rank, ranks}));
    if (!model.forward_sums.empty()) all.back() = with_pauses(model, all.back());
    if (model.is_tied(0)) all.back() = with_ties(model, all.back(), {rank, ranks});
  }
  return all;
}

}  // namespace pdp::strategy

/// An older name of pdp::strategy. It contains the names of pdp::plan as well.
namespace pdp {
namespace parallel = strategy;
}
