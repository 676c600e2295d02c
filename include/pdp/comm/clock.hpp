#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// A converter of steady-clock readings to running time, which excludes gaps in which the process did not run. Threads may share one.
///
/// The kernel does not say for how long a process was stopped. So two readings that are further apart than longest_gap count as
/// longest_gap: code that waits reads the clock more often, unless it is stopped or gets no processor.
class RunningTime {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration longest_gap = std::chrono::seconds{1};

  /// Returns the running time at a reading of the steady clock. It goes back by at most 10 ms if several threads call this.
  [[nodiscard]] Duration at(Duration steady) noexcept;

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t resolution = 10'000'000;  // ns

  std::atomic<std::int64_t> skipped_{0};   // ns
  std::atomic<std::int64_t> last_{never};  // the running time of the last reading, to within the resolution
};

/// The clock of every deadline. It stands still while this process is stopped, so a job that is suspended and continued (SIGSTOP, Ctrl-Z,
/// scontrol suspend) does not time out. Meets the requirements of a Clock of the standard library.
///
/// Code that waits must read it at least once per `slice`: use time_left() for the timeout of a system call and wait_until() for a
/// condition variable. If no thread reads the clock for longer than RunningTime::longest_gap, the clock advances by this gap only.
class Clock {
 public:
  using duration = RunningTime::Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;

  /// The longest time for which a waiter may sleep before it reads the clock again.
  static constexpr std::chrono::milliseconds slice{250};

  [[nodiscard]] static time_point now() noexcept;

 private:
  static RunningTime running_;  // one for the process, which is stopped as a whole
};

/// A duration of running time. Deadlines and timeouts are given in it.
using Duration = Clock::duration;
/// A point in running time, at which a wait ends.
using TimePoint = Clock::time_point;

/// Returns `time` + `by`, or TimePoint::max() if the clock cannot represent the sum.
constexpr TimePoint later(TimePoint time, Duration by) {
  return by > TimePoint::max() - std::max(time, TimePoint{}) ? TimePoint::max() : time + by;
}

/// Returns how long to sleep before reading the clock again, in the form that ppoll and futex take. This is the time left until `until`,
/// but at most one slice; zero after `until`.
timespec time_left(TimePoint until);

static_assert(std::chrono::is_clock_v<Clock>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/clock.hpp>
#endif
