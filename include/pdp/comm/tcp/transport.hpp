#pragma once

#include <memory>
#include <vector>

#include <pdp/comm/store.hpp>
#include <pdp/comm/tcp/descriptor.hpp>

namespace pdp::comm {

namespace tcp {
class Connections;
}

/// Messages over one TCP connection for each pair of ranks. The owner's thread reads and writes the sockets itself. Defined in
/// pdp/comm/tcp/source.hpp.
class TcpTransport {
 public:
  /// Over connections that are open: one for each other rank, in the order of ranks, and nothing at this rank's own place.
  TcpTransport(int rank, std::vector<tcp::Descriptor> sockets);
  /// Finds the others through the store, and connects to all of them. Throws Timeout, which names the missing ranks, when they are not
  /// there before the deadline.
  static TcpTransport connect(StoreView store, int rank, int size, TimePoint deadline);

  TcpTransport(TcpTransport&&) noexcept;
  TcpTransport& operator=(TcpTransport&&) noexcept;
  ~TcpTransport();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] const Failure* failure() const;
  void post(SendRequest& send);
  void post(ReceiveRequest& receive);
  bool progress();
  void wait(TimePoint until);
  void fail(Failure failure) noexcept;

 private:
  std::unique_ptr<tcp::Connections> connections_;
};

static_assert(Transport<TcpTransport>);

}  // namespace pdp::comm
