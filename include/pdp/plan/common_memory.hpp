#pragma once

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// Adapts a plan to a world whose ranks see each other's memory. A unit that all ranks would update equally is sharded as in ZeRO-1: each
/// rank updates one slice and keeps the optimizer state of that slice only. It adds up the gradients of its slice from the memory of all
/// ranks, and writes the new parameters to all of them. So neither gradients nor parameters are sent in messages.
///
/// A unit stays unchanged if it is not reduced over the world, or is sharded already. It also stays unchanged if the rank reads its
/// parameters after the start of the reduction: other ranks may change them from then on. The units of two layers that share a parameter
/// (plan/ties.hpp) both change, or neither.
Plan in_common_memory(Plan plan, RankInWorld at);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/common_memory.hpp>
#endif
