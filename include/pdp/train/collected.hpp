#pragma once

#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/strategy/strategy_ref.hpp>

/// The values of all ranks of a Trainer that rank 0 collects. Every rank makes these calls.
namespace pdp::detail {

/// Returns the plans of all ranks as their engines execute them.
template <comm::Communicator C, class Engine, strategy::Strategy S>
[[nodiscard]] std::vector<plan::Plan> carried_out_plans(C& world, Engine& engine, const plan::GradientPolicy& policy, const S& strategy) {
  return Engine::adapted(world, strategy::plans_for(policy, strategy, engine.stage().outline(), world.size()));
}

/// Returns all parameters of the model on rank 0, and an empty vector on the other ranks.
template <comm::Communicator C, class Engine, strategy::Strategy S>
[[nodiscard]] std::vector<checkpoint::Tensor> collected_parameters(C& world, Engine& engine, const plan::GradientPolicy& policy,
                                                                   const S& strategy) {
  auto& stage = engine.stage();
  const engine::Contributions from{stage.outline(), carried_out_plans(world, engine, policy, strategy),
                                   Engine::has_masters ? plan::Sharding::state : plan::Sharding::parameters};
  const auto all = engine::collect(world, stage, from);
  return world.rank() == 0 ? checkpoint::export_parameters(stage.of_model(), from, all) : std::vector<checkpoint::Tensor>{};
}

/// Returns the timeline of the last traced step on rank 0. Returns an empty one on the other ranks, and if no step was traced.
template <comm::Communicator C, class Engine, strategy::Strategy S>
[[nodiscard]] engine::Timeline collected_timeline(C& world, Engine& engine, const plan::GradientPolicy& policy, const S& strategy) {
  if (engine.times().empty()) return {};
  return engine::collect_timeline(world, engine.stage().device(), carried_out_plans(world, engine, policy, strategy), engine.times());
}

}  // namespace pdp::detail
