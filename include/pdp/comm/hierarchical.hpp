#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/hierarchical/transport.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

#ifdef PDP_SEPARATE_HIERARCHICAL
extern template class Member<HierarchicalTransport>;
#endif

/// Ranks on several hosts: `Intra` connects ranks of one host, `Inter` ranks of different hosts. All ranks form one world, which a failure
/// ends on all hosts. In a collective, as few ranks of each host as possible exchange messages with other hosts. The communicator behaves
/// as Intra if all ranks are on one host, and as Inter if each rank is on a host of its own.
template <class Intra, class Inter>
class Hierarchical {
  static_assert(sizeof(Intra) == 0, "pdp: the only hierarchical communicator is Hierarchical<comm::Shm, comm::Tcp>");
};

/// Shared memory inside a host, TCP between hosts. A program links CMake's target pdp::hierarchical, or libcrypto if it is built without
/// CMake.
template <>
class Hierarchical<Shm, Tcp> : public BasicCommunicator<Member<HierarchicalTransport>> {
 public:
  /// The name for the command line: --comm hierarchical.
  static constexpr std::string_view name{"hierarchical"};

  /// Constructs this rank of the world of all ranks of the transport.
  explicit Hierarchical(HierarchicalTransport transport);
  Hierarchical(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Hierarchical split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store and connects to them. Throws Timeout, which names the missing ranks, if they do not come
  /// before the deadline.
  static Hierarchical connect(StoreView store, int rank, int size, TimePoint deadline);
  /// The same, as if this rank were on the host named `host`. Ranks that share memory must pass the same name, and ranks that do not must
  /// pass different names.
  static Hierarchical connect(StoreView store, int rank, int size, TimePoint deadline, const std::string& host);
};

/// The communicator for a program that may run on one host or on several.
using Default = Hierarchical<Shm, Tcp>;

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_HIERARCHICAL
#include <pdp/comm/hierarchical/source.hpp>
#endif
