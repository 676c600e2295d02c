#pragma once

#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/message/stream/transport.hpp>
#include <pdp/comm/os/descriptor.hpp>

namespace pdp::comm {

namespace tcp {
class Sockets;
}

/// A transport over TCP connections, which are made when they are first wanted. Defined in pdp/comm/tcp/source.hpp.
class TcpTransport : public stream::StreamTransport<tcp::Sockets> {
 public:
  /// Uses open connections: one for each other rank, in the order of ranks, and an empty Descriptor at the index of this rank.
  TcpTransport(int rank, std::vector<Descriptor> sockets);
  /// Finds the other ranks through the store, and connects to the neighbours in their ring (see tcp::Pulses). Throws Timeout, which names
  /// the missing ranks, if they do not come before the deadline.
  static TcpTransport connect(StoreView store, int rank, int size, TimePoint deadline);

 private:
  TcpTransport(int rank, tcp::Sockets sockets);
};

static_assert(CarriesProbes<TcpTransport>);

}  // namespace pdp::comm
