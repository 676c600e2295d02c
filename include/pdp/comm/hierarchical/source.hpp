#pragma once

/// Definitions of the functions declared in pdp/comm/hierarchical.hpp and pdp/comm/hierarchical/transport.hpp, included by the former or by
/// one source; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/comm/hierarchical/hosts.hpp>
#include <pdp/comm/hierarchical/links.hpp>
#include <pdp/comm/message/source/member.hpp>
#include <pdp/comm/message/stream/transport_source.hpp>
#include <pdp/comm/shm/connect.hpp>
#include <pdp/comm/tcp/connect.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE HierarchicalTransport::HierarchicalTransport(int rank, hierarchical::HostLinks links, std::vector<int> hosts)
    : StreamTransport{rank, std::move(links)}, hosts_{std::move(hosts)} {}

PDP_INLINE HierarchicalTransport HierarchicalTransport::connect(StoreView store, int rank, int size, TimePoint deadline,
                                                                const std::string& host) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  hierarchical::Hosts hosts = hierarchical::find_hosts(store, rank, size, host, deadline);
  const int own = hosts[as_size(rank)];
  std::vector<int> here;
  for (int other = 0; other < size; ++other)
    if (hosts[as_size(other)] == own) here.push_back(other);
  const bool all_here = here.size() == hosts.size();
  std::optional<shm::Rings> rings;
  if (here.size() > 1) {
    const int seat = as_int(std::ranges::find(here, rank) - here.begin());
    const std::string key = text("hierarchical/segment/", own);
    rings.emplace(shm::connect(store, seat, as_int(here.size()), deadline, key, all_here ? std::vector<int>{} : here));
  }
  tcp::Sockets sockets{hosts.size(), all_here ? nullptr : tcp::connect(store, rank, size, deadline)};
  return {rank, hierarchical::HostLinks{std::move(rings), std::move(sockets)}, std::move(hosts)};
}

PDP_INLINE bool HierarchicalTransport::near(const std::vector<int>& ranks) const {
  return std::ranges::all_of(ranks, [&](int rank) { return host_of(rank) == host_of(ranks.front()); });
}
PDP_INLINE void HierarchicalTransport::post(GroupRequest& request) { connections().post(request); }
PDP_INLINE HierarchicalTransport::Shared HierarchicalTransport::share(std::size_t bytes) { return shm::Memory::create(bytes); }
PDP_INLINE HierarchicalTransport::Shared HierarchicalTransport::open(SharedAddress address, std::size_t bytes) {
  return shm::Memory::open(address, bytes);
}
PDP_INLINE void HierarchicalTransport::add_group(const GroupPlace& place, std::vector<Shared> boards) {
  connections().links().add_group(place, std::move(boards));
}
PDP_INLINE void HierarchicalTransport::remove_group(std::uint64_t channel) { connections().links().meetings().remove(channel); }
PDP_INLINE Region HierarchicalTransport::add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories) {
  return connections().links().meetings().sources().add(shm::Arena{number, place.ranks, place.rank, std::move(memories)});
}

PDP_INLINE Hierarchical<Shm, Tcp>::Hierarchical(HierarchicalTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
PDP_INLINE Hierarchical<Shm, Tcp> Hierarchical<Shm, Tcp>::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return connect(store, rank, size, deadline, shm::this_host());
}
PDP_INLINE Hierarchical<Shm, Tcp> Hierarchical<Shm, Tcp>::connect(StoreView store, int rank, int size, TimePoint deadline,
                                                                  const std::string& host) {
  return Hierarchical{HierarchicalTransport::connect(store, rank, size, deadline, host)};
}

static_assert(Communicator<Default> && HasReduceScatter<Default> && FailsFast<Default> && !RankOrdered<Default>);

}  // namespace pdp::comm
