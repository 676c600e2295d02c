#pragma once

#include <algorithm>
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
#include <pdp/comm/message/together/meetings.hpp>
#include <pdp/comm/message/together/partner.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/os/doorbell.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::thread {

/// Finds values for ranks that are threads: every thread can access all memory, so the offset is the address.
struct OneSpace {
  [[nodiscard]] static together::Source find(const std::byte* values, std::size_t) {
    return {.memory = 1, .offset = reinterpret_cast<std::uintptr_t>(values)};
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): ranks that are threads exchange pointers as numbers
  [[nodiscard]] static std::byte* at(const together::Source& source, int) { return reinterpret_cast<std::byte*>(source.offset); }
};
static_assert(together::Sources<OneSpace>);

/// The number of messages for which a mailbox allocates memory at the start. How many are in flight at once depends on timing, and a later
/// step must not allocate.
inline constexpr std::size_t in_flight = 64;

/// Messages in flight to one rank, each with its sender, and the state of that rank that others access.
struct Mailbox {
  std::mutex mutex;
  std::vector<std::pair<int, SendRequest*>> sends;
  std::vector<std::uint64_t> taken;   // number of messages that the owner has received, by sender
  std::vector<ReceivedProbe> probes;  // probes that the owner has not taken yet
  std::vector<Envelope> calls;        // collectives that the owner was waiting for in its last compare_calls()
  std::atomic<bool> probed{false};    // there may be probes
  std::atomic<bool> gone{false};
  std::atomic<bool> meets{false};  // the owner may be accessing values of other ranks
  Doorbell bell;
};

/// Returns the first message for a receive, or own.sends.end() if there is none. The mailbox must be locked.
inline std::vector<std::pair<int, SendRequest*>>::iterator find_message(Mailbox& own, const ReceiveRequest& receive) {
  return std::ranges::find_if(own.sends, [&](const auto& sent) {
    return sent.first == receive.peer && sent.second->envelope.channel == receive.envelope.channel &&
           sent.second->envelope.tag == receive.envelope.tag;
  });
}

/// The groups of one rank that use the shared-memory rendezvous.
class Meetings : public together::Meetings<OneSpace, Doorbell, Memory> {};

/// The state that the ranks of a world share.
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
  Memory boards;             // together::Board of each rank, for the group of all ranks
  std::atomic<int> left{0};  // ranks that have left
  std::mutex failing;
  std::atomic<bool> failed{false};
  Failure failure;
};

}  // namespace pdp::comm::thread
