#pragma once

#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/tcp/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

#ifdef PDP_SEPARATE_TCP
extern template class Member<TcpTransport>;
#endif

/// Ranks that are processes, on one host or on several, connected by TCP. A program links CMake's target pdp::tcp, or libcrypto if it is
/// built without CMake.
class Tcp : public BasicCommunicator<Member<TcpTransport>> {
 public:
  /// The name for the command line: --comm tcp.
  static constexpr std::string_view name{"tcp"};

  /// Constructs this rank of the world of all ranks of the transport.
  explicit Tcp(TcpTransport transport);
  Tcp(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Tcp split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store and connects to them. Throws Timeout, which names the missing ranks, if they do not come
  /// before the deadline.
  static Tcp connect(StoreView store, int rank, int size, TimePoint deadline);
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_TCP
#include <pdp/comm/tcp/source.hpp>
#endif
#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
