#pragma once

/// The errors of a group: failures that NCCL reports, and timeouts.

#include <chrono>
#include <cmath>
#include <string>

#include <pdp/comm/nccl/group.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

inline void Group::fail(const std::string& during, int other, ncclResult_t result) {
  const std::string what = text(during, " failed: ", describe_error(result, comm()));
  if (result != ncclRemoteError && result != ncclSystemError)
    world_->fail(CommunicationError{text("rank ", world_->rank(), ": ", what, "; NCCL_DEBUG=INFO tells more")});
  world_->fail(PeerLost{
      other, text(other < 0 ? "a rank" : text("rank ", other), " is gone or out of reach, as rank ", world_->rank(), " found out in ", what,
                  other < 0 ? "; NCCL does not say which rank; see the output of the other ranks" : "; its own output says why")});
}

inline void Group::time_out(const Call& call) {
  const double seconds = std::chrono::duration<double>(world_->deadline()).count();
  const int other = awaited(call);
  world_->fail(Timeout{text("rank ", world_->rank(), " waited ", std::lround(seconds * 1000), " ms for ", describe(call.envelope),
                            other < 0 ? "; either a rank" : text(" and heard nothing from rank ", other, "; either that rank"),
                            " has failed, makes other calls or none, or the call needs a longer deadline (PDP_DEADLINE=SECONDS)")});
}

}  // namespace pdp::comm::nccl
