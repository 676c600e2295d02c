#pragma once

/// Definitions for pdp/engine/timeline.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

PDP_INLINE double Timeline::seconds() const {
  double last = 0;
  for (const auto& rank : times)
    for (const Timed& each : rank) last = each.end > last ? each.end : last;
  return last;
}

PDP_INLINE Timeline timeline_of(const std::vector<plan::Plan>& plans, std::span<const double> times) {
  Timeline timeline;
  std::size_t at = 0;
  for (const plan::Plan& plan : plans) {
    timeline.lists.push_back(plan.step);
    auto& rank = timeline.times.emplace_back();
    for (std::size_t i = 0; i < plan.step.size(); ++i, at += 2) rank.push_back({times[at], times[at + 1]});
  }
  return timeline;
}

}  // namespace pdp::engine
