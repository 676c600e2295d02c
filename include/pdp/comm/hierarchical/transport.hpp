#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/message/stream/transport.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/shm/memory.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

namespace hierarchical {
class HostLinks;
}

/// A transport that uses shared memory between ranks of one host, and TCP between hosts. Defined in pdp/comm/hierarchical/source.hpp.
class HierarchicalTransport : public stream::StreamTransport<hierarchical::HostLinks> {
 public:
  /// `hosts`: the number of each rank's host, indexed by world rank.
  HierarchicalTransport(int rank, hierarchical::HostLinks links, std::vector<int> hosts);
  /// Finds the other ranks through the store. `host`: a text that is the same for ranks that share memory, and for no others;
  /// shm::this_host() except in tests. Throws ConfigError if there is no such rank. Throws Timeout, which names the missing ranks, if they
  /// do not arrive before the deadline.
  static HierarchicalTransport connect(StoreView store, int rank, int size, TimePoint deadline, const std::string& host);

  // Required by HostTransport and ArenaTransport.
  [[nodiscard]] int host_of(int rank) const { return hosts_[as_size(rank)]; }
  [[nodiscard]] bool near(const std::vector<int>& ranks) const;

  using StreamTransport::post;
  void post(GroupRequest& request);
  using Shared = shm::Memory;
  static constexpr std::size_t board_bytes = sizeof(together::Board);
  static Shared share(std::size_t bytes);
  static Shared open(SharedAddress address, std::size_t bytes);
  void add_group(const GroupPlace& place, std::vector<Shared> boards);
  void remove_group(std::uint64_t channel);
  Region add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories);

 private:
  std::vector<int> hosts_;
};

static_assert(HostTransport<HierarchicalTransport> && ArenaTransport<HierarchicalTransport> && CarriesProbes<HierarchicalTransport>);

}  // namespace pdp::comm
