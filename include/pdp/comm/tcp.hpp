#pragma once

#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/tcp/connect.hpp>

namespace pdp::comm {

/// Ranks that are processes, on one host or on several, connected by TCP.
class Tcp : public BasicCommunicator<TcpTransport> {
 public:
  explicit Tcp(TcpTransport transport) : BasicCommunicator{std::move(transport)} {}
  Tcp(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Tcp split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store. Throws Timeout, which names the missing ranks, when they are not there before the deadline.
  template <Store S>
  static Tcp connect(S& store, int rank, int size, TimePoint deadline) {
    return Tcp{TcpTransport::connect(store, rank, size, deadline)};
  }
};

static_assert(Communicator<Tcp> && HasReduceScatter<Tcp> && FailsFast<Tcp>);

}  // namespace pdp::comm
