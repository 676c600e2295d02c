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

/// What a group keeps in a CallQueue. Its address is the group's identity on this rank.
template <Transport T>
struct CallGroup {
  CallQueue<T>* queue = nullptr;  // that it is attached to
  std::vector<int> ranks;         // of the world, in the order of the group
  std::uint64_t channel = 0;      // the same on all ranks of the group, and of no other group
  std::uint64_t calls = 0;        // collectives so far
  std::uint32_t made = 0;         // their digest
  Call* first = nullptr;          // collectives in flight; the first one runs
  Call* last = nullptr;
  std::vector<std::byte> scratch;                  // for the one that runs
  std::array<std::vector<std::size_t>, 2> begins;  // of shards, while a schedule is made

  // What a WorkHandle does with its call.
  friend bool is_done(CallGroup& group, Call& call) { return Member<T>::is_done(group, call); }
  friend void finish(CallGroup& group, Call& call) { Member<T>::finish(group, call); }
  friend void drop(CallGroup& group, Call& call) noexcept { Member<T>::drop(group, call); }
};

}  // namespace pdp::comm
