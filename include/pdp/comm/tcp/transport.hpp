#pragma once

#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/message/stream/transport.hpp>
#include <pdp/comm/os/descriptor.hpp>

namespace pdp::comm {

namespace tcp {
class Sockets;
}

/// Messages over TCP connections, which are made when they are first wanted. Defined in pdp/comm/tcp/source.hpp.
class TcpTransport : public stream::StreamTransport<tcp::Sockets> {
 public:
  /// Uses open connections: one for each other rank, in the order of ranks, and an empty one at this rank's own place.
  TcpTransport(int rank, std::vector<Descriptor> sockets);
  /// Finds the other ranks through the store, and takes this rank's place in their ring. Throws Timeout, which names the missing ranks, if
  /// they are not there before the deadline.
  static TcpTransport connect(StoreView store, int rank, int size, TimePoint deadline);

 private:
  TcpTransport(int rank, tcp::Sockets sockets);
};

static_assert(CarriesProbes<TcpTransport>);

}  // namespace pdp::comm
