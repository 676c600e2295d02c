#pragma once

/// Definitions of pdp/comm/shm.hpp, included by that header or by one source; see pdp/core/separate_compilation.hpp.

#include <pdp/comm/message/source/member.hpp>
#include <pdp/comm/message/stream/transport_source.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/shm/connect.hpp>
#include <pdp/comm/shm/rings.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE ShmTransport ShmTransport::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return ShmTransport{rank, shm::connect(store, rank, size, deadline)};
}

PDP_INLINE void ShmTransport::post(GroupRequest& request) { connections().post(request); }

PDP_INLINE ShmTransport::Shared ShmTransport::share(std::size_t bytes) { return shm::Memory::create(bytes); }
PDP_INLINE ShmTransport::Shared ShmTransport::open(SharedAddress address, std::size_t bytes) { return shm::Memory::open(address, bytes); }
PDP_INLINE void ShmTransport::add_group(const GroupPlace& place, std::vector<Shared> boards) {
  connections().links().add_group(place, std::move(boards));
}
PDP_INLINE void ShmTransport::remove_group(std::uint64_t channel) { connections().links().meetings().remove(channel); }
PDP_INLINE Region ShmTransport::add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories) {
  return connections().links().meetings().sources().add(shm::Arena{number, place.ranks, place.rank, std::move(memories)});
}

PDP_INLINE Shm::Shm(ShmTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
PDP_INLINE Shm Shm::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Shm{ShmTransport::connect(store, rank, size, deadline)};
}

static_assert(Communicator<Shm> && HasReduceScatter<Shm> && FailsFast<Shm>);

}  // namespace pdp::comm
