#pragma once

#include <concepts>
#include <vector>

#include <pdp/nn/outline.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::strategy {

// Strategies are written with the names of pdp::plan.
using namespace plan;

/// A way to spread training over ranks: a spec of sizes, without a communicator. Its plan is a pure function.
template <class S>
concept Strategy = std::copyable<S> && requires(const S& strategy, const Outline& model, RankInWorld at) {
  { strategy.plan(model, at) } -> std::same_as<Plan>;
};

/// Returns the plans of a strategy for all ranks of a world.
template <Strategy S>
constexpr std::vector<Plan> plans(const S& strategy, const Outline& model, int ranks) {
  std::vector<Plan> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(strategy.plan(model, {rank, ranks}));
  return all;
}

}  // namespace pdp::strategy

/// The old name of pdp::strategy and pdp::plan.
namespace pdp {
namespace parallel = strategy;
}
