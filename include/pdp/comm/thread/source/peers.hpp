#pragma once

/// Definitions of the functions of pdp/comm/thread/transport.hpp that find mismatched calls and peers that have left; see
/// pdp/core/separate_compilation.hpp.

#include <atomic>
#include <mutex>
#include <optional>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/thread/transport.hpp>
#include <pdp/comm/thread/world.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE std::optional<Failure> ThreadTransport::find_earlier(const Envelope& call) {
  Mailbox& own = mailbox(rank_);
  const std::lock_guard lock{own.mutex};
  for (const auto& [sender, send] : own.sends)
    if (const Envelope& theirs = send->envelope;
        theirs.tag == Envelope::collective && theirs.channel == call.channel && theirs.sequence < call.sequence)
      return mismatch(call, rank_, theirs, sender);
  return std::nullopt;
}

PDP_INLINE void ThreadTransport::check_peers() {
  const auto lost = [this](int peer, const char* does, const Envelope& call, const char* direction) {
    end({Failure::Kind::lost, peer,
         text("rank ", rank_, does, describe(call), direction, peer, ", which has finished; all ranks must make the same calls")});
  };
  for (const ReceiveRequest* receive : receives_)
    if (mailbox(receive->peer).gone.load(std::memory_order_acquire) && !has_message(rank_, receive->peer))
      lost(receive->peer, " expects ", receive->envelope, " from rank ");
  for (auto* meeting : meetings_->active())
    if (const int missing = meeting->missing(); missing >= 0 && mailbox(missing).gone.load(std::memory_order_acquire) && !meeting->ready())
      lost(missing, " expects ", meeting->request()->envelope, " from rank ");
  for (int peer = 0; peer < size(); ++peer)
    if (mailbox(peer).gone.load(std::memory_order_acquire))
      if (const auto send = has_message(peer, rank_)) lost(peer, " started ", *send, " to rank ");
}

PDP_INLINE std::optional<Envelope> ThreadTransport::has_message(int of, int from) const {
  const std::lock_guard lock{mailbox(of).mutex};
  for (const auto& [sender, send] : mailbox(of).sends)
    if (sender == from) return send->envelope;
  return std::nullopt;
}

PDP_INLINE void ThreadTransport::compare_calls() {
  calls_.clear();
  const auto add = [this](const Envelope& call) {
    if (call.tag == Envelope::collective) calls_.push_back(call);
  };
  for (const ReceiveRequest* receive : receives_) add(receive->envelope);
  for (const auto* meeting : meetings_->active()) add(meeting->request()->envelope);
  for (Mailbox& each : world_->mailboxes) {
    const std::lock_guard lock{each.mutex};
    for (const auto& [sender, send] : each.sends)
      if (sender == rank_) add(send->envelope);
  }
  {
    const std::lock_guard lock{mailbox(rank_).mutex};
    mailbox(rank_).calls = calls_;
  }
  Failure wrong;
  const auto compare = [&](const Envelope& theirs, int other) {
    for (Envelope mine : calls_) {
      if (mine.channel != theirs.channel || mine.sequence != theirs.sequence) continue;
      mine.bytes = theirs.bytes;  // messages of one call may have different lengths
      if (mine != theirs) wrong = mismatch(mine, rank_, theirs, other);
    }
  };
  for (int other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    const std::lock_guard lock{mailbox(other).mutex};
    for (const Envelope& theirs : mailbox(other).calls) compare(theirs, other);
  }
  {
    const std::lock_guard lock{mailbox(rank_).mutex};
    for (const auto& [sender, send] : mailbox(rank_).sends)
      if (send->envelope.tag == Envelope::collective) compare(send->envelope, sender);
  }
  // A rank that is in a later call sends no more messages of earlier ones.
  for (const ReceiveRequest* receive : receives_) {
    if (receive->envelope.tag != Envelope::collective || has_message(rank_, receive->peer)) continue;
    const std::lock_guard lock{mailbox(receive->peer).mutex};
    for (const Envelope& theirs : mailbox(receive->peer).calls)
      if (theirs.channel == receive->envelope.channel && theirs.sequence > receive->envelope.sequence)
        wrong = mismatch(receive->envelope, rank_, theirs, receive->peer);
  }
  if (!wrong.message.empty()) end(std::move(wrong));
}

}  // namespace pdp::comm
