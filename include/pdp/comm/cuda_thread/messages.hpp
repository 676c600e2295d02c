#pragma once

/// Messages between two ranks of a group.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/envelope.hpp>

namespace pdp::comm::cuda_thread {

inline Call& Group::start_message(Call& call) {
  call.users.store(call.from != no_peer ? 1 : 0, std::memory_order_relaxed);
  call.has_received = call.from == no_peer;
  call.sent = call.to == no_peer;
  messages_.push_back(&call);
  if (!call.sent) {
    show(call);
    seat(call.to).bell.ring();
  }
  owner_->advance();
  return call;
}

/// Matches all receives under one lock, so that messages between two ranks with the same tag keep their order.
inline void Group::find_messages() {
  const std::lock_guard lock{world().mutex()};
  for (Call* call : messages_) {
    if (call->has_received || call->found != nullptr) continue;
    std::vector<Call*>& shown = seat(call->from).shown;
    const auto found = std::ranges::find_if(shown, [&](const Call* each) {
      return each->envelope.channel == channel_ && each->envelope.tag == call->envelope.tag && each->to == rank_ && !each->is_given;
    });
    if (found == shown.end()) continue;
    call->found = *found;
    call->found->is_given = true;  // matched with this receive
  }
}

inline bool Group::advance_message(Call& call) {
  bool moved = false;
  if (!call.has_received && call.found != nullptr) {
    Call& theirs = *call.found;
    const auto words = [&](const ErasedSpan& memory) {
      Envelope envelope = call.envelope;
      envelope.count = memory.count;
      envelope.type = memory.type;
      return envelope;
    };
    if (theirs.in.type != call.out.type || theirs.in.count != call.out.count)
      owner_->fail(mismatch(words(call.out), owner_->number(), words(theirs.in), rank_in_world(call.from)));
    give(call, [&] {
      follow(theirs.ready);
      follow(call.ready);
      Parts{call, rank_, owner_->device(), stream_}.copy(call.out, theirs.in);
      mark(call.end);
    });
    theirs.taken.store(&call, std::memory_order_release);  // this rank no longer reads `theirs`
    seat(call.from).bell.ring();
    call.has_received = moved = true;
  }
  if (Call* const by = call.taken.load(std::memory_order_acquire); !call.sent && by != nullptr) {
    give(call, [&] { follow(by->end); });
    by->users.fetch_sub(1, std::memory_order_acq_rel);
    call.sent = moved = true;
  }
  if (!call.sent || !call.has_received) {
    if (!moved) check_peers(call);
    return moved;
  }
  give(call, [&] { mark(call.through); });
  {
    const std::lock_guard lock{world().mutex()};
    std::erase(owner_->seat().shown, &call);
  }
  call.state = State::closed;
  return true;
}

}  // namespace pdp::comm::cuda_thread
