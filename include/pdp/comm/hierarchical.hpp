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

/// Ranks on several hosts: those of one host by `Intra`, ranks of different hosts by `Inter`. It is one world: between any two ranks there
/// is one way, a failure is one failure, and collectives go over as few ranks of each host as they can. Where all ranks are on one host,
/// or no two of them are, it does what the one that is left does.
template <class Intra, class Inter>
class Hierarchical {
  static_assert(sizeof(Intra) == 0, "pdp: the hierarchical communicator that there is is Hierarchical<comm::Shm, comm::Tcp>");
};

/// Shared memory inside a host, TCP between hosts. A program links CMake's pdp::hierarchical, or
/// libcrypto.
template <>
class Hierarchical<Shm, Tcp> : public BasicCommunicator<Member<HierarchicalTransport>> {
 public:
  /// What a command line calls it: --comm hierarchical.
  static constexpr std::string_view name{"hierarchical"};

  explicit Hierarchical(HierarchicalTransport transport);
  Hierarchical(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Hierarchical split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Finds the other ranks through the store. Throws Timeout, which names the missing ranks, when they are not there before the deadline.
  static Hierarchical connect(StoreView store, int rank, int size, TimePoint deadline);
  /// As if this rank were on the host of that name: the same for ranks that share memory, and for no others.
  static Hierarchical connect(StoreView store, int rank, int size, TimePoint deadline, const std::string& host);
};

/// What a program uses that does not know where it will run.
using Default = Hierarchical<Shm, Tcp>;

static_assert(Communicator<Default> && HasReduceScatter<Default> && FailsFast<Default> && !RankOrdered<Default>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_HIERARCHICAL
#include <pdp/comm/hierarchical/source.hpp>
#endif
