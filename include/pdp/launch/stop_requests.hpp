#pragma once

#include <signal.h>

#include <chrono>
#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Notices requests to stop this process: the signals SIGTERM and SIGUSR1, and the end of the time that it may run. While an object exists,
/// these signals do not end the process. A handler that the program had installed before is called as well. The thread that has made the
/// object blocks the signals and takes them in requested(), as a signal handler must not interrupt oneDNN's products: it may corrupt their
/// memory. Destroy the object on that thread. Tells pdp's launcher, if it has
/// started this process, so that the launcher passes SIGTERM and SIGUSR1 on to the ranks and waits for them.
class StopRequests {
 public:
  /// `after`: the time for which the program may run, from its start or that of pdp's launcher; 0: that of PDP_STOP_AFTER (see
  /// parse_stop_after), or any time. Throws UsageError if that variable is not valid.
  explicit StopRequests(std::chrono::seconds after = std::chrono::seconds{0});
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;
  ~StopRequests();

  /// Returns whether a signal has arrived, since the first object was made, or the time is over.
  [[nodiscard]] bool requested() const noexcept;
  /// Call it when the ranks have agreed to stop. The signal of this process may still be on its way: it is then ignored once, also after
  /// the end of this object.
  void agreed() const noexcept;

 private:
  sigset_t mask_before_{};  // of this thread
  std::chrono::steady_clock::time_point end_;
};

/// Returns the time that a text means: seconds, MINUTES:SECONDS, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS, as Slurm's --time
/// prints it. Throws UsageError, which begins with `name`, if it is none of these.
[[nodiscard]] std::chrono::seconds parse_stop_after(const char* name, const std::string& words);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/source/stop_requests.hpp>
#endif
