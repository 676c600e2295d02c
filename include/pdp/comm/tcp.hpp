#pragma once

#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/tcp/transport.hpp>
#include <pdp/comm/thread.hpp>

namespace pdp::comm {

extern template class Member<TcpTransport>;
// Such a program may run its ranks as threads or as one as well, and has a source in which these can be compiled, too.
extern template class Member<ThreadTransport>;
extern template class Member<SelfTransport>;

/// Ranks that are processes, on one host or on several, connected by TCP. A program links CMake's pdp::tcp, or has one source that includes
/// pdp/comm/tcp/source.hpp.
class Tcp : public BasicCommunicator<Member<TcpTransport>> {
 public:
  /// What a command line calls it: --comm tcp.
  static constexpr std::string_view name{"tcp"};

  explicit Tcp(TcpTransport transport);
  Tcp(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Tcp split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store. Throws Timeout, which names the missing ranks, when they are not there before the deadline.
  static Tcp connect(StoreView store, int rank, int size, TimePoint deadline);
};

static_assert(Communicator<Tcp> && HasReduceScatter<Tcp> && FailsFast<Tcp>);

}  // namespace pdp::comm
