#pragma once

/// Definitions for pdp/comm/thread.hpp; see pdp/core/separate_compilation.hpp.

#include <utility>
#include <vector>

#include <pdp/comm/message/member.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/comm/thread/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE Thread::Thread(ThreadTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}

PDP_INLINE std::vector<Thread> Thread::world(int size) {
  std::vector<Thread> ranks;
  for (ThreadTransport& transport : ThreadTransport::world(size)) ranks.emplace_back(std::move(transport));
  return ranks;
}

static_assert(Communicator<Thread> && HasReduceScatter<Thread> && FailsFast<Thread>);

}  // namespace pdp::comm
