#pragma once

#include <signal.h>

#include <chrono>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::stream {

/// The heartbeats of ranks. A rank sends them from a helper thread, so a rank that computes for an hour is not silent. A rank is silent if
/// its process is stopped or its machine is out of reach.
struct Heartbeat {
  /// The time between two heartbeats of a rank.
  static constexpr std::chrono::milliseconds interval{250};
  /// How long a rank may be silent before the world fails, unless the user sets another time.
  static constexpr std::chrono::seconds patience{10};

  /// Blocks all signals in the calling thread, which sends heartbeats. Signals are for the program's own threads.
  static void hold_back_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

  /// Returns the failure of a world in which rank `silent` has been silent for the duration `time`. `why`: a likely cause.
  static Failure lost(int silent, int found_by, Duration time, std::string_view why) {
    return {Failure::Kind::lost, silent,
            text("rank ", silent, " is gone: rank ", found_by, " has received no heartbeat from it for ",
                 std::chrono::duration_cast<std::chrono::milliseconds>(time).count(), " ms; ", why,
                 " (PDP_HEARTBEAT sets how long a rank may be silent; a debugger or a very busy machine may need longer)")};
  }
};

}  // namespace pdp::comm::stream
