#pragma once

/// How an Inbox detects that the calls of two ranks differ: definitions for inbox.hpp, which includes this file.

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/stream/inbox.hpp>
#include <pdp/comm/message/stream/stray.hpp>

namespace pdp::comm::stream {

/// Ignores `bytes`, because messages of one call may differ in length.
inline bool Inbox::is_same_call(Envelope one, const Envelope& other) {
  one.bytes = other.bytes;
  return one == other;
}

inline void Inbox::compare(const Inbox& other) {
  for (const ReceiveRequest* each = posted_.front(); each != nullptr && !fault_; each = each->next) {
    const Envelope& mine = each->envelope;
    if (mine.tag != Envelope::collective) continue;
    for (const Stray* stray = other.strays_.front(); stray != nullptr && !fault_; stray = stray->next)
      if (const Envelope& theirs = stray->envelope; theirs.tag == Envelope::collective && theirs.channel == mine.channel &&
                                                    theirs.sequence == mine.sequence && !is_same_call(mine, theirs))
        fault_ = mismatch(mine, rank_, theirs, other.peer_);
    if (!other.waits_in_ || fault_ || mine.channel != other.waits_in_->channel) continue;
    const Envelope& theirs = *other.waits_in_;
    const bool too_late = &other == this && theirs.sequence > mine.sequence;
    if (too_late || (mine.sequence == theirs.sequence && !is_same_call(mine, theirs))) fault_ = mismatch(mine, rank_, theirs, other.peer_);
  }
}

inline void Inbox::compare(const Envelope& mine) {
  const auto differs = [&](const Envelope& theirs) {
    return theirs.tag == Envelope::collective && theirs.channel == mine.channel && theirs.sequence == mine.sequence &&
           !is_same_call(mine, theirs);
  };
  for (const Stray* each = strays_.front(); each != nullptr && !fault_; each = each->next)
    if (differs(each->envelope)) fault_ = mismatch(mine, rank_, each->envelope, peer_);
  if (waits_in_ && !fault_ && differs(*waits_in_)) fault_ = mismatch(mine, rank_, *waits_in_, peer_);
}

inline void Inbox::compare_earlier(const Envelope& mine) {
  for (const Stray* each = strays_.front(); each != nullptr && !fault_; each = each->next)
    if (each->envelope.tag == Envelope::collective && each->envelope.channel == mine.channel && each->envelope.sequence < mine.sequence)
      fault_ = mismatch(mine, rank_, each->envelope, peer_);
}

}  // namespace pdp::comm::stream
