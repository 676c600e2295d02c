#pragma once

#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/shm/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

#ifdef PDP_SEPARATE_SHM
extern template class Member<ShmTransport>;
#endif

/// Ranks that are processes of one user on one host, connected by shared memory. A program links CMake's target pdp::shm, or libcrypto if
/// it is built without CMake.
class Shm : public BasicCommunicator<Member<ShmTransport>> {
 public:
  /// The name for the command line: --comm shm.
  static constexpr std::string_view name{"shm"};

  /// Constructs this rank of the world of all ranks of the transport.
  explicit Shm(ShmTransport transport);
  Shm(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Shm split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store and connects to them. Throws ConfigError if they are not on one host. Throws Timeout, which
  /// names the missing ranks, if they do not come before the deadline.
  static Shm connect(StoreView store, int rank, int size, TimePoint deadline);
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_SHM
#include <pdp/comm/shm/source.hpp>
#endif
#ifndef PDP_SEPARATE_LAUNCH
#include <pdp/launch/start/source.hpp>
#endif
