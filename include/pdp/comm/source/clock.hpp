#pragma once

/// Definitions for pdp/comm/clock.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

#include <pdp/comm/clock.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE RunningTime::Duration RunningTime::at(Duration steady) noexcept {
  while (true) {
    std::int64_t skipped = skipped_.load(std::memory_order_acquire);
    std::int64_t last = last_.load(std::memory_order_acquire);
    const std::int64_t now = steady.count() - skipped;
    if (last == never || now - last <= longest_gap.count()) {
      // Writes are rare, since all threads share the cache line.
      while (last == never || now - last > resolution)
        if (last_.compare_exchange_weak(last, now, std::memory_order_acq_rel)) break;
      return Duration{std::max(now, last == never ? now : last)};
    }
    skipped_.compare_exchange_strong(skipped, skipped + (now - last - longest_gap.count()), std::memory_order_acq_rel);
  }
}

PDP_INLINE RunningTime Clock::running_;

PDP_INLINE Clock::time_point Clock::now() noexcept { return time_point{running_.at(std::chrono::steady_clock::now().time_since_epoch())}; }

PDP_INLINE timespec time_left(TimePoint until) {
  const std::int64_t left = std::min<Duration>(until - std::min(until, Clock::now()), Clock::slice).count();
  return {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
}

}  // namespace pdp::comm
