#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// Detects the end of other ranks' processes. The system may reuse the id of an ended process. So a watch is reliable only if the rank
/// shows after watch() that it is alive.
class Processes {
 public:
  explicit Processes(int size) : watched_(as_size(size), pollfd{.fd = -1, .events = POLLIN, .revents = 0}) {
    descriptors_.resize(watched_.size());
    ended_.resize(watched_.size());
  }

  /// Begins to watch a rank's process. Ignores the current process, because its end also ends the watcher. Throws ConfigError if the system
  /// does not allow it.
  void watch(int rank, pid_t process) {
    if (process == ::getpid()) return;
    const auto r = as_size(rank);
    descriptors_[r] = Descriptor{as_int(::syscall(SYS_pidfd_open, process, 0))};
    if (!descriptors_[r] && errno != ESRCH) {
      const int reason = errno;
      throw ConfigError{text("cannot watch the process of rank ", rank, " (", process, "): ", describe_system_error(reason),
                             is_shortage(reason) ? ""
                                                 : "; ranks that share memory need pidfd_open, which Linux has since 5.3 and a container "
                                                   "may deny; or use another communicator, such as tcp")};
    }
    watched_[r].fd = descriptors_[r].get();
    ended_[r] = !descriptors_[r];
  }

  /// Polls all processes, at most once per `pulse`.
  void look() {
    const TimePoint now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + pulse;
    if (::poll(watched_.data(), watched_.size(), 0) <= 0) return;
    for (std::size_t r = 0; r < watched_.size(); ++r)
      if (watched_[r].revents != 0) ended_[r] = true;
  }
  [[nodiscard]] bool ended(int rank) const { return ended_[as_size(rank)]; }

  /// The shortest useful interval between polls.
  static constexpr Duration pulse = std::chrono::milliseconds{20};

 private:
  std::vector<pollfd> watched_;
  std::vector<Descriptor> descriptors_;
  std::vector<bool> ended_;
  TimePoint next_look_{};
};

}  // namespace pdp::comm::shm
