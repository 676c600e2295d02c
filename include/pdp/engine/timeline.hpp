#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Begin and end of an instruction on a rank, in seconds since a barrier of all ranks.
struct Timed {
  double begin = 0;
  double end = 0;
};

/// One step as it ran: for each rank its list of instructions, and their times.
struct Timeline {
  std::vector<plan::Instructions> lists;
  std::vector<std::vector<Timed>> times;

  /// Returns the time at which the last rank finished, in seconds.
  [[nodiscard]] double seconds() const;
};

/// Returns the timeline of all ranks. `times`: begin and end of each instruction, rank after rank.
[[nodiscard]] Timeline timeline_of(const std::vector<plan::Plan>& plans, std::span<const double> times);

/// Collects the times of all ranks on rank 0; returns an empty timeline on the others. Every rank makes this call. `plans`: the plans of
/// all ranks.
template <comm::Communicator C, class D>
[[nodiscard]] Timeline collect_timeline(C& world, const D& device, const std::vector<plan::Plan>& plans, std::span<const Timed> own) {
  std::vector<std::size_t> counts;
  std::size_t numbers = 0;
  for (const plan::Plan& plan : plans) numbers += counts.emplace_back(2 * plan.step.size());
  std::vector<double> sent, all(world.rank() == 0 ? numbers : 0);
  for (const Timed& each : own) sent.insert(sent.end(), {each.begin, each.end});
  HostCalls{world, device}.gather(std::span<const double>{sent}, std::span{all}, std::span<const std::size_t>{counts}, 0);
  return world.rank() == 0 ? timeline_of(plans, all) : Timeline{};
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/timeline.hpp>
#endif
