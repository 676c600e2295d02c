#pragma once

/// Definitions for pdp/train/describe.hpp; see pdp/core/separate_compilation.hpp.

#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/machine_memory.hpp>
#include <pdp/plan/common_memory.hpp>
#include <pdp/train/describe.hpp>

namespace pdp::detail {

PDP_INLINE plan::Description describe(const nn::Outline& model, std::vector<nn::LayerInfo> layers, strategy::StrategyRef strategy,
                                      int ranks, const TrainerOptions& options, const plan::Workload& work) {
  auto plans = strategy::plans_for(options.gradient_policy(), strategy, model, ranks);
  for (int rank = 0; rank < ranks && work.common_memory; ++rank) {
    plan::Plan& plan = plans[as_size(rank)];
    plan = plan::in_common_memory(std::move(plan), {rank, ranks});
  }
  plan::Description found = plan::describe(model, plans, work, std::move(layers));
  found.device = cpu::describe(options.cpu());
  return found;
}

PDP_INLINE plan::Machine this_machine(int ranks) { return {cpu::machine_memory(), 0, ranks}; }

}  // namespace pdp::detail
