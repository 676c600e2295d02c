#pragma once

#include <pdp/comm/communicator.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/plan/common_memory.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Returns a rank's plan as its engine executes it: in_common_memory() of it if the ranks see each other's memory.
template <class T, class Reduced, comm::Communicator C>
[[nodiscard]] plan::Plan adapted_plan(const C& world, const plan::Plan& plan, int rank) {
  if constexpr (may_see_memory<C, T, Reduced>)
    if (world.shares_memory()) return plan::in_common_memory(plan, {rank, world.size()});
  return plan;
}

}  // namespace pdp::engine
