#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// When a rank began an instruction and when it was through, in seconds since the ranks had met at a barrier.
struct Timed {
  double begin = 0;
  double end = 0;
};

/// One step as it ran: for each rank its list of instructions, and when it was at each of them.
struct Timeline {
  std::vector<plan::Instructions> lists;
  std::vector<std::vector<Timed>> times;

  /// Seconds until the last rank was through.
  [[nodiscard]] double seconds() const {
    double last = 0;
    for (const auto& rank : times)
      for (const Timed& each : rank) last = each.end > last ? each.end : last;
    return last;
  }
};

/// Brings the times of all ranks together on rank 0; gives an empty timeline on the others. Every rank makes this call. `plans`: of all.
template <comm::Communicator C, class D>
[[nodiscard]] Timeline collect_timeline(C& world, const D& device, const std::vector<plan::Plan>& plans, std::span<const Timed> own) {
  std::vector<double> sent, all;
  for (const Timed& each : own) sent.insert(sent.end(), {each.begin, each.end});
  std::vector<std::size_t> counts;
  for (const plan::Plan& plan : plans) counts.push_back(2 * plan.step.size());
  if (world.rank() == 0)
    for (const std::size_t count : counts) all.resize(all.size() + count);
  HostCalls{world, device}.gather(std::span<const double>{sent}, std::span{all}, std::span<const std::size_t>{counts}, 0);
  Timeline timeline;
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < plans.size() && world.rank() == 0; ++rank) {
    timeline.lists.push_back(plans[rank].step);
    auto& times = timeline.times.emplace_back();
    for (std::size_t i = 0; i < plans[rank].step.size(); ++i, at += 2) times.push_back({all[at], all[at + 1]});
  }
  return timeline;
}

}  // namespace pdp::engine
