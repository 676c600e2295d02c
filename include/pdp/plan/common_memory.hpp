#pragma once

#include <algorithm>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan {

/// A plan for a world whose ranks see each other's memory. Of a unit that all of them would update equally each one updates a slice, and
/// keeps the optimizer's state of that only: it adds up the others' gradients where they lie, and leaves the new parameters with them, so
/// that neither costs a message. A unit stays what it is where it is not reduced over the world, and where a rank still computes with its
/// parameters when it has started to reduce: others may change them from then on.
Plan in_common_memory(Plan plan, RankInWorld at);

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/plan/source/common_memory.hpp>
#endif
