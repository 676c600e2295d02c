#pragma once

#include <algorithm>
#include <chrono>

#include <pdp/comm/clock.hpp>

namespace pdp::launch {

/// How often a rank tries to reach the job's store, and how long it waits for an answer each time. Both times double up to a bound.
struct Pace {
  comm::Duration first_pause = std::chrono::milliseconds{10};  // between attempts
  comm::Duration longest_pause = std::chrono::milliseconds{200};
  comm::Duration first_patience = std::chrono::seconds{5};  // for an answer on one connection; doubles each time none comes
  comm::Duration longest_patience = std::chrono::seconds{30};

  [[nodiscard]] comm::Duration longer_pause(comm::Duration pause) const { return std::min(2 * pause, longest_pause); }
  [[nodiscard]] comm::Duration longer_patience(comm::Duration patience) const { return std::min(2 * patience, longest_patience); }
};

}  // namespace pdp::launch
