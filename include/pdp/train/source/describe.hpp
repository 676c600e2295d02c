#pragma once

/// Definitions for pdp/train/describe.hpp; see pdp/core/separate_compilation.hpp.

#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/plan/common_memory.hpp>
#include <pdp/train/describe.hpp>

namespace pdp::detail {

PDP_INLINE plan::Description describe(const nn::Outline& whole, const nn::Outline& model, strategy::StrategyRef strategy, int ranks,
                                      const TrainerOptions& options, const plan::Workload& work) {
  auto plans = strategy::plans_for(options.gradient_policy(), strategy, model, ranks);
  for (int rank = 0; rank < ranks && work.common_memory; ++rank) {
    plan::Plan& plan = plans[as_size(rank)];
    plan = plan::in_common_memory(std::move(plan), {rank, ranks});
  }
  plan::Description found = plan::describe(model, plans, work);
  found.parameters = whole.elements(0, whole.size());
  found.device = cpu::describe(options.cpu());
  return found;
}

}  // namespace pdp::detail
