#pragma once

/// How a rank detects calls that differ and peers that are lost: definitions for connections.hpp, which includes this file.

#include <cstddef>
#include <utility>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/stream/connections.hpp>

namespace pdp::comm::stream {

template <class L>
void Connections<L>::find_earlier(const Envelope& call) requires GroupLinks<L> {
  for (Connection* each : open_) {
    if (failure_) return;
    if (!each->inbox.ended() && links_.unread(each->peer)) read(*each);
    each->inbox.compare_earlier(call);
    note_fault(*each);
  }
}

template <class L>
void Connections<L>::check_meetings() requires GroupLinks<L> {
  const auto& active = links_.meetings().active();
  for (std::size_t i = 0; i < active.size(); ++i) {
    const int missing = active[i]->missing();
    if (missing < 0) continue;
    active[i]->request()->missing = missing;
    Connection& awaited = connection(missing);
    if (!awaited.inbox.said_bye()) continue;
    if (move_meetings() || failure_) return;
    awaited.inbox.lost_after_bye(active[i]->request()->envelope);
    note_fault(awaited);
    if (failure_) return;
  }
}

template <class L>
void Connections<L>::note_fault(Connection& faulty) {
  if (failure_ || !faulty.inbox.fault()) return;
  Connection* cause = &faulty;
  if (!faulty.inbox.told() && faulty.inbox.fault()->kind == Failure::Kind::lost) {
    if (links_.news()) {
      hear_news();
      if (failure_) return;
    }
    for (Connection* each : open_) {
      if (each == &faulty || each->inbox.ended()) continue;
      read(*each);
      if (each->inbox.told()) cause = each;
    }
  }
  fail(std::move(*cause->inbox.fault()));
}

template <class L>
void Connections<L>::compare_calls() {
  for (Connection& each : connections_) {
    if (!each.open && each.inbox.expects()) {
      if (const Envelope* awaited = each.inbox.awaited(); awaited != nullptr) each.outbox.note(*awaited);
      links_.want(each.peer);
    }
  }
  for (Connection* each : open_) {
    if constexpr (GroupLinks<L>) {
      for (const auto* meeting : links_.meetings().active()) {
        each->outbox.note(meeting->request()->envelope);
        each->inbox.compare(meeting->request()->envelope);
      }
    }
    if (const Envelope* awaited = each->inbox.awaited(); awaited != nullptr) each->outbox.note(*awaited);
    if (!each->outbox.empty()) write(*each);
    for (const Connection& other : connections_) each->inbox.compare(other.inbox);
    note_fault(*each);
    if (failure_) return;
  }
}

}  // namespace pdp::comm::stream
