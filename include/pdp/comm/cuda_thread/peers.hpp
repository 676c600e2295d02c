#pragma once

/// Checks of the other ranks of a group: calls that differ from this rank's, and ranks that have left.

#include <atomic>
#include <string>
#include <utility>

#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::cuda_thread {

inline void Group::compare(const Call& call, const Call& theirs, int other) {
  const int here = owner_->number(), there = rank_in_world(other);
  if (call.envelope != theirs.envelope) owner_->fail(mismatch(call.envelope, here, theirs.envelope, there));
  const auto fail = [&](const std::string& what) {
    owner_->fail({Failure::Kind::mismatch, here,
                  text("ranks of one group passed different counts to one call: ", describe(call.envelope), " (call ",
                       call.envelope.sequence, " of its group): ", what)});
  };
  if (call.envelope.verb == Verb::all_to_all) {
    const auto [sent, expected] = std::pair{theirs.cut.size(rank_), call.received.size(other)};
    if (sent != expected) fail(text("rank ", there, " sends ", sent, " elements to rank ", here, ", which expects ", expected));
  } else if (call.begins[0] != theirs.begins[0]) {
    fail(text("the counts of rank ", here, " differ from those of rank ", there, "; pass the same list of counts on all ranks"));
  }
}

inline int Group::missing(const Call& call) const {
  if (call.envelope.tag != Envelope::collective) return rank_in_world(call.has_received ? call.to : call.from);
  for (int other = 0; other < size(); ++other)
    if (const Call* const theirs = call.all[as_size(other)]; theirs == nullptr || !theirs->is_given)
      if (other != rank_) return rank_in_world(other);
  return -1;
}

inline void Group::check_peers(const Call& call) {
  const auto lost = [&](int other, const char* does, const char* direction) {
    const int there = rank_in_world(other);
    owner_->fail({Failure::Kind::lost, there,
                  text("rank ", owner_->number(), does, describe(call.envelope), direction, there,
                       ", which has finished; all ranks must make the same calls")});
  };
  const auto is_gone = [this](int other) { return other != rank_ && seat(other).is_gone.load(std::memory_order_acquire); };
  if (call.envelope.tag == Envelope::collective) {
    for (int other = 0; other < size(); ++other)
      if (is_gone(other) && !has_shown(call, other)) lost(other, " expects ", " from rank ");
    return;
  }
  if (!call.sent && is_gone(call.to) && call.taken.load(std::memory_order_acquire) == nullptr) lost(call.to, " started ", " to rank ");
  if (!call.has_received && is_gone(call.from)) {
    find_messages();
    if (call.found == nullptr) lost(call.from, " expects ", " from rank ");
  }
}

inline bool Group::has_shown(const Call& call, int other) const {
  if (const Call* const theirs = call.all[as_size(other)]; theirs != nullptr) return theirs->is_given;
  return find(call, other) != nullptr;
}

}  // namespace pdp::comm::cuda_thread
