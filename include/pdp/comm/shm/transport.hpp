#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/message/stream/transport.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/shm/memory.hpp>

namespace pdp::comm {

namespace shm {
class Rings;
}

/// A transport through memory that the ranks of one host share: a ring of bytes for each ordered pair of ranks. Defined in
/// pdp/comm/shm/source.hpp.
class ShmTransport : public stream::StreamTransport<shm::Rings> {
 public:
  using StreamTransport::StreamTransport;
  /// Finds the other ranks through the store. Throws ConfigError if they are not on one host. Throws Timeout, which names the missing
  /// ranks, if they do not come before the deadline.
  static ShmTransport connect(StoreView store, int rank, int size, TimePoint deadline);

  using StreamTransport::post;
  void post(GroupRequest& request);

  // Required by ArenaTransport.
  using Shared = shm::Memory;
  static constexpr std::size_t board_bytes = sizeof(together::Board);
  static Shared share(std::size_t bytes);
  static Shared open(SharedAddress address, std::size_t bytes);
  [[nodiscard]] static bool near(const std::vector<int>&) { return true; }
  void add_group(const GroupPlace& place, std::vector<Shared> boards);
  void remove_group(std::uint64_t channel);
  Region add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories);
};

static_assert(GroupTransport<ShmTransport> && ArenaTransport<ShmTransport> && CarriesProbes<ShmTransport>);

}  // namespace pdp::comm
