#pragma once

#include <signal.h>

#include <chrono>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::stream {

/// Signs of life, which a rank gives whatever its own thread is doing: one that computes for an hour is not silent, one whose process is
/// stopped or whose machine is out of reach is.
struct Heartbeat {
  /// How often a rank gives one.
  static constexpr std::chrono::milliseconds interval{250};
  /// How long it may give none before the world fails, unless the user says otherwise.
  static constexpr std::chrono::seconds patience{10};

  /// For the thread that gives them: signals are for the program's own threads.
  static void hold_back_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

  /// A rank has given none for too long. `why`: what may be the matter.
  static Failure lost(int silent, int found_by, Duration time, std::string_view why) {
    return {Failure::Kind::lost, silent,
            text("rank ", silent, " is gone: rank ", found_by, " has had no sign of life from it for ",
                 std::chrono::duration_cast<std::chrono::milliseconds>(time).count(), " ms; ", why,
                 " (PDP_HEARTBEAT sets how long a rank may be silent; a debugger or a very busy machine may need longer)")};
  }
};

}  // namespace pdp::comm::stream
