#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/thread/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

#ifdef PDP_SEPARATE_CORE
extern template class Member<ThreadTransport>;
#endif

/// Ranks that are threads of one process.
class Thread : public BasicCommunicator<Member<ThreadTransport>> {
 public:
  /// The name for the command line: --comm thread.
  static constexpr std::string_view name{"thread"};

  /// Constructs this rank of the world of all ranks of the transport.
  explicit Thread(ThreadTransport transport);
  Thread(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Thread split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Creates all ranks of a new world. Move each rank to a thread of its own.
  static std::vector<Thread> world(int size);
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/thread.hpp>
#endif
