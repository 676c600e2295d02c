#pragma once

/// What pdp/comm/shm.hpp declares, compiled once for a program: one source of it includes this file. CMake's target pdp::shm adds that
/// source.

#include <pdp/comm/shm.hpp>
#include <pdp/comm/shm/connect.hpp>
#include <pdp/comm/shm/rings.hpp>
#include <pdp/comm/stream/transport_source.hpp>

namespace pdp::comm {

template class stream::StreamTransport<shm::Rings>;

ShmTransport ShmTransport::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return ShmTransport{rank, shm::connect(store, rank, size, deadline)};
}

bool ShmTransport::takes(const Envelope& call) const { return connections().takes(call); }
void ShmTransport::post(GroupRequest& request) { connections().post(request); }

template class Member<ShmTransport>;
template class Member<ThreadTransport>;
template class Member<SelfTransport>;

Shm::Shm(ShmTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
Shm Shm::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Shm{ShmTransport::connect(store, rank, size, deadline)};
}

}  // namespace pdp::comm
