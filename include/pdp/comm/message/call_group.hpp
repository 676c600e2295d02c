#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <pdp/comm/message/transport.hpp>

namespace pdp::comm {

class Call;
template <Transport T>
class CallQueue;
template <Transport T>
class Member;

/// The state of a group in a CallQueue. Its address identifies the group on this rank.
template <Transport T>
struct CallGroup {
  CallQueue<T>* queue = nullptr;  // the queue that it is attached to
  std::vector<int> ranks;         // of the world, in the order of the group
  std::uint64_t channel = 0;      // equal on all ranks of the group; differs from that of every other group
  std::uint64_t calls = 0;        // number of collectives so far
  std::uint32_t made = 0;         // digest of these collectives
  Call* first = nullptr;          // collectives in flight; the first one is running
  Call* last = nullptr;
  std::vector<std::byte> scratch;                  // for the running collective
  std::array<std::vector<std::size_t>, 2> begins;  // offsets of shards, used while a schedule is written

  // Required by WorkHandle.
  friend bool is_done(CallGroup& group, Call& call) { return Member<T>::is_done(group, call); }
  friend void finish(CallGroup& group, Call& call) { Member<T>::finish(group, call); }
  friend void drop(CallGroup& group, Call& call) noexcept { Member<T>::drop(group, call); }
};

}  // namespace pdp::comm
