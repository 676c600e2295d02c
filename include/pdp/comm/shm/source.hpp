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

void ShmTransport::post(GroupRequest& request) { connections().post(request); }

ShmTransport::Shared ShmTransport::share(std::size_t bytes) { return shm::Memory::create(bytes); }
ShmTransport::Shared ShmTransport::open(SharedAddress address, std::size_t bytes) { return shm::Memory::open(address, bytes); }
void ShmTransport::add_group(const GroupPlace& place, std::vector<Shared> boards) {
  connections().links().add_group(place, std::move(boards));
}
void ShmTransport::remove_group(std::uint64_t channel) { connections().links().meetings().remove(channel); }
Region ShmTransport::add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories) {
  return connections().links().meetings().sources().add(shm::Arena{number, place.ranks, place.rank, std::move(memories)});
}

template class Member<ShmTransport>;
template class Member<ThreadTransport>;
template class Member<SelfTransport>;

Shm::Shm(ShmTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
Shm Shm::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Shm{ShmTransport::connect(store, rank, size, deadline)};
}

}  // namespace pdp::comm
