#pragma once

/// Definitions of pdp/comm/tcp.hpp, included by that header or by one source; see pdp/core/separate_compilation.hpp.

#include <utility>

#include <pdp/comm/message/source/member.hpp>
#include <pdp/comm/message/stream/transport_source.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/tcp/connect.hpp>
#include <pdp/comm/tcp/sockets.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE TcpTransport::TcpTransport(int rank, tcp::Sockets sockets) : StreamTransport{rank, std::move(sockets)} {}
PDP_INLINE TcpTransport::TcpTransport(int rank, std::vector<Descriptor> sockets)
    : StreamTransport{rank, tcp::Sockets{std::move(sockets)}} {}
PDP_INLINE TcpTransport TcpTransport::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return TcpTransport{rank, tcp::Sockets{as_size(size), tcp::connect(store, rank, size, deadline)}};
}

PDP_INLINE Tcp::Tcp(TcpTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
PDP_INLINE Tcp Tcp::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Tcp{TcpTransport::connect(store, rank, size, deadline)};
}

static_assert(Communicator<Tcp> && HasReduceScatter<Tcp> && FailsFast<Tcp>);

}  // namespace pdp::comm
