#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/thread/transport.hpp>

namespace pdp::comm {

/// Ranks that are threads of one process.
class Thread : public BasicCommunicator<Member<ThreadTransport>> {
 public:
  /// What a command line calls it: --comm thread.
  static constexpr std::string_view name{"thread"};

  explicit Thread(ThreadTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
  Thread(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Thread split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// All ranks of a new world; each goes to a thread of its own.
  static std::vector<Thread> world(int size) {
    std::vector<Thread> ranks;
    for (ThreadTransport& transport : ThreadTransport::world(size)) ranks.emplace_back(std::move(transport));
    return ranks;
  }
};

static_assert(Communicator<Thread> && HasReduceScatter<Thread> && FailsFast<Thread>);

}  // namespace pdp::comm
