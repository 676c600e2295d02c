#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <pdp/comm/clock.hpp>

namespace pdp::comm {

/// Waits on a condition variable until ready() is true. Calls ready() with `lock` held. Returns false if `until` comes first.
template <class Ready>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, TimePoint until, const Ready& ready) {
  while (!ready()) {
    const TimePoint now = Clock::now();
    if (now >= until) return false;
    changed.wait_for(lock, std::min<Duration>(until - now, Clock::slice));
  }
  return true;
}

}  // namespace pdp::comm
