#pragma once

/// What pdp/comm/tcp.hpp declares, compiled once for a program: one source of it includes this file. CMake's target pdp::tcp adds that
/// source.

#include <utility>

#include <pdp/comm/tcp.hpp>
#include <pdp/comm/tcp/connect.hpp>
#include <pdp/comm/tcp/connections.hpp>

namespace pdp::comm {

TcpTransport::TcpTransport(int rank, std::vector<tcp::Descriptor> sockets)
    : connections_{std::make_unique<tcp::Connections>(rank, std::move(sockets))} {}
TcpTransport TcpTransport::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return TcpTransport{rank, tcp::connect(store, rank, size, deadline)};
}

TcpTransport::TcpTransport(TcpTransport&&) noexcept = default;
TcpTransport& TcpTransport::operator=(TcpTransport&&) noexcept = default;
TcpTransport::~TcpTransport() = default;

int TcpTransport::rank() const { return connections_->rank(); }
int TcpTransport::size() const { return connections_->size(); }
const Failure* TcpTransport::failure() const { return connections_->failure(); }
void TcpTransport::post(SendRequest& send) { connections_->post(send); }
void TcpTransport::post(ReceiveRequest& receive) { connections_->post(receive); }
bool TcpTransport::progress() { return connections_->progress(); }
void TcpTransport::wait(TimePoint until) { connections_->wait(until); }
void TcpTransport::fail(Failure failure) noexcept { connections_->fail(std::move(failure)); }

template class Member<TcpTransport>;
template class Member<ThreadTransport>;
template class Member<SelfTransport>;

Tcp::Tcp(TcpTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
Tcp Tcp::connect(StoreView store, int rank, int size, TimePoint deadline) {
  return Tcp{TcpTransport::connect(store, rank, size, deadline)};
}

}  // namespace pdp::comm
