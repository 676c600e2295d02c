#pragma once

#include <pdp/comm/store.hpp>
#include <pdp/comm/stream/transport.hpp>

namespace pdp::comm {

namespace shm {
class Rings;
}

/// Messages through memory that the ranks of one host share: a ring of bytes for each ordered pair. Defined in pdp/comm/shm/source.hpp.
class ShmTransport : public stream::StreamTransport<shm::Rings> {
 public:
  using StreamTransport::StreamTransport;
  /// Finds the others through the store. Throws ConfigError where they are not on one host, Timeout, which names the missing ranks, when
  /// they are not there before the deadline.
  static ShmTransport connect(StoreView store, int rank, int size, TimePoint deadline);

  using StreamTransport::post;
  /// All-reduce and barrier of the world.
  [[nodiscard]] bool takes(const Envelope& call) const;
  void post(GroupRequest& request);
};

static_assert(GroupTransport<ShmTransport>);

}  // namespace pdp::comm
