#pragma once

/// Definitions for pdp/rpc/call/core.hpp: statistics and the timeline. See pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/statistics.hpp>
#include <pdp/rpc/timeline.hpp>

namespace pdp::rpc {

namespace detail {

PDP_INLINE double seconds(comm::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace detail

PDP_INLINE std::vector<MethodStatistics> Core::statistics() const {
  std::vector<MethodStatistics> all;
  for (const auto& [name, each] : statistics_) {
    all.push_back(each);
    all.back().name = name;
  }
  std::ranges::sort(all, {}, &MethodStatistics::name);
  return all;
}

PDP_INLINE void Core::waited(std::string_view method, comm::Duration time) { statistics_[method].waiting_seconds += detail::seconds(time); }

PDP_INLINE void Core::record(std::string file) {
  check_timeline_file(file);
  timeline_file_ = std::move(file);
  collectives_.barrier();
  timeline_begin_ = comm::Clock::now();
  // Ranks leave a barrier at different times. Ranks of one host have the same clock, so they take the time of rank 0.
  std::int64_t ticks = timeline_begin_.time_since_epoch().count();
  collectives_.broadcast(std::span{&ticks, 1}, 0);
  const comm::TimePoint of_master{comm::Duration{ticks}};
  if (of_master > timeline_begin_ - std::chrono::milliseconds{10} && of_master < timeline_begin_ + std::chrono::milliseconds{10})
    timeline_begin_ = of_master;
}

PDP_INLINE void Core::ran(const Call& call, comm::TimePoint begin) {
  const comm::TimePoint end = comm::Clock::now();
  MethodStatistics& statistics = statistics_[call.method->name];
  ++statistics.runs;
  statistics.running_seconds += detail::seconds(end - begin);
  if (timeline_file_.empty()) return;
  CallSpan span{std::string{call.method->name}, detail::seconds(begin - timeline_begin_), detail::seconds(end - timeline_begin_),
                call.result};
  for (const Awaited& need : call.needs) span.arguments.push_back(need.slot);
  span.arguments.insert(span.arguments.end(), call.kept.begin(), call.kept.end());
  timeline_.push_back(std::move(span));
}

PDP_INLINE void Core::write_timeline() {
  const std::string own = encode_calls(timeline_);
  std::vector<std::int64_t> sizes(as_size(size()));
  const auto bytes = static_cast<std::int64_t>(own.size());
  collectives_.all_gather(std::span{&bytes, 1}, sizes);
  std::vector<std::size_t> counts(sizes.begin(), sizes.end());
  std::vector<std::byte> all(rank() == 0 ? std::accumulate(counts.begin(), counts.end(), std::size_t{0}) : 0);
  collectives_.gather(std::as_bytes(std::span{own}), all, counts, 0);
  if (rank() != 0) return;
  CallTimeline timeline{names_, {}};
  const char* next = reinterpret_cast<const char*>(all.data());
  for (const std::size_t count : counts) {
    timeline.calls.push_back(decode_calls(std::string{next, count}));
    next += count;
  }
  rpc::write_timeline(timeline_file_, timeline);
}

}  // namespace pdp::rpc
