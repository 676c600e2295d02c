#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/stream/inbox.hpp>
#include <pdp/comm/stream/links.hpp>
#include <pdp/comm/stream/outbox.hpp>
#include <pdp/comm/waiting.hpp>

namespace pdp::comm::stream {

/// The connections of one rank, one for each other rank, and all that a transport does with them. The owner's thread reads and writes the
/// streams itself.
template <class L>
class Connections {
  static_assert(Links<L>, "pdp: connections go over a model of stream::Links");

 public:
  Connections(int rank, L links) : rank_{rank}, links_{std::move(links)}, strays_{size() > 1 ? 2 * static_cast<std::size_t>(size()) : 0} {
    connections_.reserve(static_cast<std::size_t>(size()));
    for (int peer = 0; peer < size(); ++peer) connections_.push_back({peer, links_.open(peer), Inbox{rank, peer}, {}});
    interests_.resize(connections_.size());
  }

  Connections(Connections&&) = delete;
  ~Connections() { leave(); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return links_.size(); }
  [[nodiscard]] const Failure* failure() const { return failure_.get(); }

  void post(SendRequest& send) {
    send.done.store(false, std::memory_order_relaxed);
    if (failure_) return;
    Connection& to = connection(send.peer);
    const bool idle = to.outbox.empty();
    to.outbox.post(send);
    if (to.inbox.said_bye()) to.inbox.lost_after_bye(send.envelope);
    if (idle) write(to);
    note_fault(to);
  }
  void post(ReceiveRequest& receive) {
    receive.done = false;
    if (failure_) return;
    Connection& from = connection(receive.peer);
    from.inbox.post(receive, strays_);
    note_fault(from);
  }

  [[nodiscard]] bool takes(const Envelope& call) const requires GroupLinks<L> { return links_.together().takes(call); }
  void post(GroupRequest& request) requires GroupLinks<L> {
    request.done = false;
    request.missing = rank_;
    if (failure_) return;
    links_.together().begin(request);
    move_together();
  }

  bool progress() {
    if (failure_) failure_->raise();
    bool moved = false;
    if constexpr (GroupLinks<L>) moved = move_together();
    for (Connection& each : connections_)
      if (each.open && (each.inbox.expects() || !each.outbox.empty())) moved = serve(each) || moved;
    // A rank that looks often and never sleeps must hear of failures, too, and of messages that it does not expect yet.
    if (!moved && ++looks_ % looks_between_polls == 0) moved = sleep(Clock::time_point{});
    if (failure_) failure_->raise();
    return moved;
  }

  void wait(TimePoint until) {
    Waiting waiting;
    do
      if (progress()) return;
    while (waiting.look_again());
    if (!sleep(std::min(until, Clock::now() + patience))) compare_calls();
    if constexpr (GroupLinks<L>) check_together();
    if (failure_) failure_->raise();
  }

  void fail(Failure failure) noexcept {
    if (failure_) return;
    failure.message.resize(std::min(failure.message.size(), Frame::longest_text));
    failure_ = std::make_unique<Failure>(std::move(failure));
    if constexpr (GroupLinks<L>) links_.together().drop();
    for (Connection& each : connections_)
      each.outbox.finish({.kind = Frame::Kind::failure, .envelope = {.tag = static_cast<int>(failure_->kind), .root = failure_->rank}},
                         failure_->message);
    flush_all(Clock::now() + telling);
  }

 private:
  struct Connection {
    int peer;
    bool open;
    Inbox inbox;
    Outbox outbox;
  };
  static constexpr unsigned looks_between_polls = 64;
  static constexpr Duration patience = std::chrono::milliseconds{100};
  static constexpr Duration telling = std::chrono::milliseconds{50};   // how long a failure may hold up its rank
  static constexpr Duration leaving = std::chrono::milliseconds{500};  // how long a goodbye may take

  [[nodiscard]] Connection& connection(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  bool read(Connection& each) { return links_.read(each.peer, each.inbox, strays_); }
  bool write(Connection& each) {
    return each.outbox.flush([&](std::span<iovec, 2> parts) { return links_.write(each.peer, parts); });
  }

  bool serve(Connection& each) {
    bool moved = !each.outbox.empty() && write(each);
    if (!each.inbox.ended()) moved = read(each) || moved;
    if (each.outbox.broken() && !moved) each.inbox.closed();  // all that was there has been read
    if (each.inbox.said_bye() && each.outbox.message() != nullptr) each.inbox.lost_after_bye(each.outbox.message()->envelope);
    note_fault(each);
    return moved;
  }

  /// Moves the collective that goes without messages. Once it is complete, all that the others have sent in earlier ones is there.
  bool move_together() requires GroupLinks<L> {
    auto& together = links_.together();
    const GroupRequest* const request = together.request();
    if (request == nullptr) return false;
    const bool moved = together.advance();
    if (together.fault()) fail(std::move(*together.fault()));
    if (request->done)
      for (Connection& each : connections_) {
        if (!each.open || failure_) continue;
        if (links_.unread(each.peer)) read(each);
        each.inbox.compare_earlier(request->envelope);
        note_fault(each);
      }
    return moved;
  }
  /// A rank that has said goodbye takes part no more.
  void check_together() requires GroupLinks<L> {
    auto& together = links_.together();
    const int missing = together.missing();
    if (missing < 0 || failure_) return;
    together.request()->missing = missing;
    Connection& awaited = connection(missing);
    if (!awaited.inbox.said_bye() || move_together() || failure_) return;
    awaited.inbox.lost_after_bye(together.request()->envelope);
    note_fault(awaited);
  }

  /// Makes a fault of one connection the failure of the world. Where a peer seems to be gone, it may be that it has heard of a failure
  /// before this rank has, and has left: then another peer's word on it lies here unread.
  void note_fault(Connection& faulty) {
    if (failure_ || !faulty.inbox.fault()) return;
    Connection* cause = &faulty;
    if (!faulty.inbox.told() && faulty.inbox.fault()->kind == Failure::Kind::lost)
      for (Connection& each : connections_) {
        if (&each == &faulty || !each.open || each.inbox.ended()) continue;
        read(each);
        if (each.inbox.told()) cause = &each;
      }
    fail(std::move(*cause->inbox.fault()));
  }

  /// Ranks whose calls differ may all wait for a message that nobody sends, so that no message meets a receive that shows it. So a rank
  /// that has waited for long says where, and compares with what the others have said.
  void compare_calls() {
    for (Connection& each : connections_) {
      if (!each.open) continue;
      if constexpr (GroupLinks<L>)
        if (const GroupRequest* request = links_.together().request(); request != nullptr) {
          each.outbox.note(request->envelope);
          each.inbox.compare(request->envelope);
        }
      if (const Envelope* awaited = each.inbox.awaited(); awaited != nullptr) each.outbox.note(*awaited);
      if (!each.outbox.empty()) write(each);
      for (const Connection& other : connections_) each.inbox.compare(other.inbox);
      note_fault(each);
    }
  }

  /// Sleeps until a stream can be read, or written where that is wanted, and does it.
  bool sleep(TimePoint until) {
    for (const Connection& each : connections_)
      interest(each) = {.read = each.open && !each.inbox.ended(), .write = each.open && !each.outbox.empty()};
    if (!links_.wait(interests_, until)) return false;
    bool moved = false;
    if constexpr (GroupLinks<L>) moved = move_together();
    for (Connection& each : connections_)
      if (interest(each).ready && !failure_) moved = serve(each) || moved;
    return moved;
  }
  [[nodiscard]] Interest& interest(const Connection& each) { return interests_[static_cast<std::size_t>(each.peer)]; }

  /// Writes what is left to say, until the given time.
  void flush_all(TimePoint until) noexcept {
    while (true) {
      bool waiting = false;
      for (Connection& each : connections_) {
        if (each.open && !each.outbox.empty() && !each.outbox.broken()) write(each);
        interest(each) = {.write = each.open && !each.outbox.empty() && !each.outbox.broken()};
        waiting = waiting || interest(each).write;
      }
      if (!waiting || Clock::now() >= until) return;
      links_.wait(interests_, until);
    }
  }

  void leave() noexcept {
    const TimePoint until = Clock::now() + leaving;
    for (Connection& each : connections_) {
      if (failure_) continue;
      // Half a message cannot be completed any more, as its memory may be gone; the peer will see that the connection ends within it.
      if (each.outbox.within_message())
        each.outbox.drop();
      else
        each.outbox.finish({.kind = Frame::Kind::bye}, {});
    }
    flush_all(until);
    links_.leave(until);
  }

  int rank_;
  L links_;
  std::vector<Connection> connections_;
  Strays strays_;
  std::vector<Interest> interests_;
  std::unique_ptr<Failure> failure_;
  unsigned looks_ = 0;
};

}  // namespace pdp::comm::stream
