#pragma once

/// What pdp/comm/tcp.hpp declares, compiled once for a program: one source of it includes this file. CMake's target pdp::tcp adds that
/// source.

#include <utility>

#include <pdp/comm/stream/transport_source.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/tcp/connect.hpp>
#include <pdp/comm/tcp/sockets.hpp>

namespace pdp::comm {

template class stream::StreamTransport<tcp::Sockets>;

TcpTransport::TcpTransport(int rank, tcp::Sockets sockets) : StreamTransport{rank, std::move(sockets)} {}
TcpTransport::TcpTransport(int rank, std::vector<Descriptor> sockets) : StreamTransport{rank, tcp::Sockets{std::move(sockets)}} {}
TcpTransport TcpTransport::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return TcpTransport{rank, tcp::Sockets{static_cast<std::size_t>(size), tcp::connect(store, rank, size, deadline)}};
}

template class Member<TcpTransport>;
template class Member<ThreadTransport>;
template class Member<SelfTransport>;

Tcp::Tcp(TcpTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
Tcp Tcp::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Tcp{TcpTransport::connect(store, rank, size, deadline)};
}

}  // namespace pdp::comm
