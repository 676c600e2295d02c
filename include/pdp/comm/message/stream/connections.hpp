#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/message/stream/inbox.hpp>
#include <pdp/comm/message/stream/links.hpp>
#include <pdp/comm/message/stream/outbox.hpp>
#include <pdp/comm/os/waiting.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::stream {

/// The connections of one rank, one for each other rank, and the operations of a transport on them. The owner's thread reads and writes the
/// streams.
template <class L>
class Connections {
  static_assert(Links<L>, "pdp: L must model stream::Links");

 public:
  Connections(int rank, L links) : rank_{rank}, links_{std::move(links)}, strays_{size() > 1 ? 2 * as_size(size()) : 0} {
    connections_.reserve(as_size(size()));
    open_.reserve(connections_.capacity());
    for (int peer = 0; peer < size(); ++peer)
      connections_.push_back({.peer = peer, .open = false, .inbox = Inbox{rank, peer}, .outbox = {}});
    interests_.resize(connections_.size());
    find_open();
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
    ++to.posted;
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

  [[nodiscard]] L& links() { return links_; }
  [[nodiscard]] const L& links() const { return links_; }
  void post(GroupRequest& request) requires GroupLinks<L> {
    request.done = false;
    request.missing = rank_;
    if (failure_) return;
    links_.meetings().begin(request);
    move_meetings();
  }

  bool progress() {
    if (failure_) failure_->raise();
    bool moved = links_.news() && hear_news();
    if constexpr (GroupLinks<L>) moved = move_meetings() || moved;
    for (Connection* each : open_)
      if (each->inbox.expects() || !each->outbox.empty()) moved = serve(*each) || moved;
    // A rank that polls often and never sleeps must also notice failures and unexpected messages.
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
    if constexpr (GroupLinks<L>) check_meetings();
    if (failure_) failure_->raise();
  }

  void fail(Failure failure) noexcept {
    if (failure_) return;
    failure.message.resize(std::min(failure.message.size(), Frame::longest_text));
    failure_ = std::make_unique<Failure>(std::move(failure));
    if constexpr (GroupLinks<L>) links_.meetings().drop();
    for (Connection* each : open_)
      each->outbox.finish({.kind = Frame::Kind::failure, .envelope = {.tag = as_int(failure_->kind), .root = failure_->rank}},
                          failure_->message);
    links_.tell(*failure_);
    flush_all(Clock::now() + telling);
  }

  /// Sends no probe for a send, because a waiting rank reads everything that is sent to it.
  void send_probe(Probe probe, int peer, const SendRequest* send) {
    if (failure_ || send != nullptr) return;
    Connection& to = connection(peer);
    probe.received = to.inbox.received();
    to.outbox.note(frame_of(probe));
    write(to);
  }
  std::optional<ReceivedProbe> take_probe() {
    for (Connection* each : open_) {
      for (std::vector<Probe>& probes = each->inbox.probes(); !probes.empty();) {
        const Probe next = probes.front();
        probes.erase(probes.begin());
        if (next.kind == Probe::Kind::meeting || next.received == each->posted) return ReceivedProbe{next, each->peer};
      }
    }
    return std::nullopt;
  }

  void heartbeat(Duration duration) { links_.heartbeat(duration); }

 private:
  struct Connection {
    int peer;
    bool open;
    Inbox inbox;
    Outbox outbox;
    std::uint64_t posted = 0;  // messages posted to the peer
  };
  static constexpr unsigned looks_between_polls = 64;
  static constexpr Duration patience = std::chrono::milliseconds{100};
  static constexpr Duration telling = std::chrono::milliseconds{50};   // how long the report of a failure may delay its rank
  static constexpr Duration leaving = std::chrono::milliseconds{500};  // how long a goodbye may take

  void find_open() {
    for (Connection& each : connections_) {
      if (!each.open && links_.open(each.peer)) {
        each.open = true;
        open_.push_back(&each);
      }
    }
  }
  bool hear_news() {
    const std::size_t known = open_.size();
    News news = links_.take_news();
    find_open();
    if (news.failure) {
      fail(std::move(*news.failure));
      return true;
    }
    for (const int peer : news.left) {
      Connection& departed = connection(peer);
      departed.inbox.left();
      const Envelope* const call = departed.outbox.message() != nullptr ? &departed.outbox.message()->envelope : departed.inbox.expected();
      if (call != nullptr) departed.inbox.lost_after_bye(*call);
      note_fault(departed);
    }
    for (std::size_t i = known; i < open_.size(); ++i) serve(*open_[i]);
    return open_.size() > known;
  }

  [[nodiscard]] Connection& connection(int peer) { return connections_[as_size(peer)]; }

  bool read(Connection& each) { return links_.read(each.peer, each.inbox, strays_); }
  bool write(Connection& each) {
    if (!each.open) {
      links_.want(each.peer);
      return false;
    }
    return each.outbox.flush([&](std::span<iovec, 2> parts) { return links_.write(each.peer, parts); });
  }

  bool serve(Connection& each) {
    bool moved = !each.outbox.empty() && write(each);
    if (!each.inbox.ended()) moved = read(each) || moved;
    if (each.outbox.broken() && !moved) each.inbox.closed();  // everything that had arrived has been read
    if (each.inbox.said_bye() && each.outbox.message() != nullptr) each.inbox.lost_after_bye(each.outbox.message()->envelope);
    note_fault(each);
    return moved;
  }

  /// Advances the collectives that use shared memory instead of messages.
  bool move_meetings() requires GroupLinks<L> {
    if (links_.meetings().active().empty()) return false;
    bool moved = false, ended = false;
    for (auto* each : links_.meetings().active()) {
      const GroupRequest* const request = each->request();
      moved = each->advance() || moved;
      if (each->fault()) {
        find_earlier(request->envelope);
        fail(std::move(*each->fault()));
        return moved;
      }
      ended = ended || request->done;
    }
    if (ended) links_.meetings().remove_ended();
    return moved;
  }
  /// Ends the world if a peer has sent a message of an earlier collective that has no receive. Such a message is closer to the cause than a
  /// mismatch in `call` itself.
  void find_earlier(const Envelope& call) requires GroupLinks<L>;
  /// Records which rank each rendezvous waits for. Ends the world if that rank has said goodbye, as it takes part in no further calls.
  void check_meetings() requires GroupLinks<L>;
  /// Makes a fault of one connection the failure of the world. A peer that seems to be lost may have left because it learned of a failure
  /// earlier than this rank. So this reads the other streams first, and prefers a failure that another peer reports there.
  void note_fault(Connection& faulty);
  /// Compares calls of ranks after a long wait. If calls differ, all ranks may wait for messages that are never sent, so that no message
  /// reveals the difference. Each rank therefore tells the others which collective it waits in, and compares it with those that they
  /// report. If there is no stream yet to an awaited peer, this rank requests one, because the peer may have left.
  void compare_calls();

  /// Sleeps until a stream can be read, or written if there is something to write. Then reads and writes. Returns whether anything moved.
  bool sleep(TimePoint until) {
    for (const Connection* each : open_) interest(*each) = {.read = !each->inbox.ended(), .write = !each->outbox.empty()};
    if (!links_.wait(interests_, until)) return false;
    bool moved = false;
    if constexpr (GroupLinks<L>) moved = move_meetings();
    for (Connection* each : open_)
      if (interest(*each).ready && !failure_) moved = serve(*each) || moved;
    return moved;
  }
  [[nodiscard]] Interest& interest(const Connection& each) { return interests_[as_size(each.peer)]; }

  /// Writes the remaining output, until the given time at most.
  void flush_all(TimePoint until) noexcept {
    while (true) {
      bool waiting = false;
      for (Connection* each : open_) {
        if (!each->outbox.empty() && !each->outbox.broken()) write(*each);
        interest(*each) = {.write = !each->outbox.empty() && !each->outbox.broken()};
        waiting = waiting || interest(*each).write;
      }
      if (!waiting || Clock::now() >= until) return;
      links_.wait(interests_, until);
    }
  }

  void leave() noexcept {
    const TimePoint until = Clock::now() + leaving;
    if (!failure_ && links_.news()) hear_news();  // ranks that have just connected receive the goodbye, too
    for (Connection* each : open_) {
      if (failure_) continue;
      // The rest of a partly sent message cannot be sent, as its memory may be gone. The peer sees that the connection ends within it.
      if (each->outbox.within_message())
        each->outbox.drop();
      else
        each->outbox.finish({.kind = Frame::Kind::bye}, {});
    }
    flush_all(until);
    links_.leave(until);
  }

  int rank_;
  L links_;
  std::vector<Connection> connections_;  // never reallocated; open_ points into it
  std::vector<Connection*> open_;
  Strays strays_;
  std::vector<Interest> interests_;
  std::unique_ptr<Failure> failure_;
  unsigned looks_ = 0;
};

}  // namespace pdp::comm::stream

#include <pdp/comm/message/stream/connection_faults.hpp>
