#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/os/doorbell.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::thread {

/// Messages that there is room for from the start: how many meet in a mailbox is a matter of luck, and must not allocate in a later step.
inline constexpr std::size_t in_flight = 64;

/// What is on its way to one rank, with the rank it comes from.
struct Mailbox {
  std::mutex mutex;
  std::vector<std::pair<int, SendRequest*>> sends;
  std::vector<std::uint64_t> taken;   // messages that the owner has received, by sender
  std::vector<ReceivedProbe> probes;  // that the owner has not seen yet
  std::vector<Envelope> calls;        // collectives that the owner has waited for in vain, when it last looked
  std::atomic<bool> probed{false};    // whether there may be probes
  std::atomic<bool> gone{false};
  std::atomic<bool> meets{false};  // the owner is at values of other ranks
  Doorbell bell;
};

/// What the ranks of a world have in common.
struct World {
  explicit World(int size) : mailboxes(as_size(size)), boards{Memory::create(mailboxes.size() * sizeof(together::Board))} {
    for (Mailbox& each : mailboxes) {
      each.sends.reserve(in_flight);
      each.calls.reserve(in_flight);
      each.probes.reserve(in_flight);
      each.taken.resize(mailboxes.size());
    }
  }
  std::vector<Mailbox> mailboxes;
  Memory boards;             // of the world, one for each rank
  std::atomic<int> left{0};  // ranks that are gone
  std::mutex failing;
  std::atomic<bool> failed{false};
  Failure failure;
};

}  // namespace pdp::comm::thread
