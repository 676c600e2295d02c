#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/store.hpp>
#include <pdp/comm/tcp/descriptor.hpp>
#include <pdp/comm/tcp/inbox.hpp>
#include <pdp/comm/tcp/outbox.hpp>
#include <pdp/comm/waiting.hpp>

namespace pdp::comm::tcp {

/// The connections of one rank, one for each other rank, and all that a TcpTransport does with them.
class Connections {
 public:
  /// Over connections that are open: one for each other rank, in the order of ranks, and nothing at this rank's own place.
  Connections(int rank, std::vector<Descriptor> sockets) : rank_{rank}, strays_{sockets.size() > 1 ? 2 * sockets.size() : 0} {
    if (sockets.size() > 1) staging_ = std::make_unique<Staging>();
    connections_.reserve(sockets.size());
    for (Descriptor& socket : sockets) {
      const int peer = static_cast<int>(connections_.size());
      connections_.push_back({std::move(socket), Inbox{rank, peer}, {}});
    }
    polled_.resize(sockets.size());
  }

  Connections(Connections&&) = delete;
  ~Connections() { leave(); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(connections_.size()); }
  [[nodiscard]] const Failure* failure() const { return failure_.get(); }

  void post(SendRequest& send) {
    send.done.store(false, std::memory_order_relaxed);
    if (failure_) return;
    Connection& to = connection(send.peer);
    const bool idle = to.outbox.empty();
    to.outbox.post(send);
    if (to.inbox.said_bye()) to.inbox.lost_after_bye(send.envelope);
    if (idle) to.outbox.flush(to.socket.get());
    note_fault(to);
  }
  void post(ReceiveRequest& receive) {
    receive.done = false;
    if (failure_) return;
    Connection& from = connection(receive.peer);
    from.inbox.post(receive, strays_);
    note_fault(from);
  }

  bool progress() {
    if (failure_) failure_->raise();
    bool moved = false;
    for (Connection& each : connections_)
      if (each.socket && (each.inbox.expects() || !each.outbox.empty())) moved = serve(each) || moved;
    // A rank that looks often and never sleeps must hear of failures, too, and of messages that it does not expect yet.
    if (!moved && ++looks_ % looks_between_polls == 0) moved = poll(Clock::time_point{});
    if (failure_) failure_->raise();
    return moved;
  }

  void wait(TimePoint until) {
    Waiting waiting;
    do
      if (progress()) return;
    while (waiting.look_again());
    if (!poll(std::min(until, Clock::now() + patience))) compare_calls();
    if (failure_) failure_->raise();
  }

  void fail(Failure failure) noexcept {
    if (failure_) return;
    failure.message.resize(std::min(failure.message.size(), Frame::longest_text));
    failure_ = std::make_unique<Failure>(std::move(failure));
    for (Connection& each : connections_)
      each.outbox.finish({.kind = Frame::Kind::failure, .envelope = {.tag = static_cast<int>(failure_->kind), .root = failure_->rank}},
                         failure_->message);
    flush_all(Clock::now() + telling);
  }

 private:
  struct Connection {
    Descriptor socket;
    Inbox inbox;
    Outbox outbox;
  };
  static constexpr unsigned looks_between_polls = 64;
  static constexpr Duration patience = std::chrono::milliseconds{100};
  static constexpr Duration telling = std::chrono::milliseconds{50};   // how long a failure may hold up its rank
  static constexpr Duration leaving = std::chrono::milliseconds{500};  // how long a goodbye may take

  [[nodiscard]] Connection& connection(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  bool serve(Connection& each) {
    bool moved = !each.outbox.empty() && each.outbox.flush(each.socket.get());
    if (!each.inbox.ended()) moved = each.inbox.read(each.socket.get(), *staging_, strays_) || moved;
    if (each.outbox.broken() && !moved) each.inbox.closed();  // all that was there has been read
    if (each.inbox.said_bye() && each.outbox.message() != nullptr) each.inbox.lost_after_bye(each.outbox.message()->envelope);
    note_fault(each);
    return moved;
  }

  /// Makes a fault of one connection the failure of the world. Where a peer seems to be gone, it may be that it has heard of a failure
  /// before this rank has, and has left: then another peer's word on it lies here unread.
  void note_fault(Connection& faulty) {
    if (failure_ || !faulty.inbox.fault()) return;
    Connection* cause = &faulty;
    if (!faulty.inbox.told() && faulty.inbox.fault()->kind == Failure::Kind::lost)
      for (Connection& each : connections_) {
        if (&each == &faulty || !each.socket || each.inbox.ended()) continue;
        each.inbox.read(each.socket.get(), *staging_, strays_);
        if (each.inbox.told()) cause = &each;
      }
    fail(std::move(*cause->inbox.fault()));
  }

  /// Ranks whose calls differ may all wait for a message that nobody sends, so that no message meets a receive that shows it. So a rank
  /// that has waited for long says where, and compares with what the others have said.
  void compare_calls() {
    for (Connection& each : connections_) {
      if (!each.socket) continue;
      if (const Envelope* awaited = each.inbox.awaited(); awaited != nullptr) each.outbox.note(*awaited);
      if (!each.outbox.empty()) each.outbox.flush(each.socket.get());
      for (const Connection& other : connections_) each.inbox.compare(other.inbox);
      note_fault(each);
    }
  }

  /// Sleeps until a socket can be read, or written where that is wanted, and does it.
  bool poll(TimePoint until) {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const Connection& each = connections_[i];
      const bool readable = each.socket && !each.inbox.ended();
      const short events = static_cast<short>((readable ? POLLIN : 0) | (each.outbox.empty() ? 0 : POLLOUT));
      polled_[i] = {.fd = events != 0 ? each.socket.get() : -1, .events = events, .revents = 0};
    }
    const timespec left = time_left(until);
    if (::ppoll(polled_.data(), polled_.size(), &left, nullptr) <= 0) return false;
    bool moved = false;
    for (std::size_t i = 0; i < connections_.size() && !failure_; ++i)
      if (polled_[i].revents != 0) moved = serve(connections_[i]) || moved;
    return moved;
  }

  /// Writes what is left to say, until the given time.
  void flush_all(TimePoint until) noexcept {
    while (true) {
      std::size_t waiting = 0;
      for (Connection& each : connections_) {
        if (!each.socket || each.outbox.empty() || each.outbox.broken()) continue;
        each.outbox.flush(each.socket.get());
        if (!each.outbox.empty() && !each.outbox.broken()) polled_[waiting++] = {.fd = each.socket.get(), .events = POLLOUT, .revents = 0};
      }
      if (waiting == 0 || Clock::now() >= until) return;
      const timespec left = time_left(until);
      ::ppoll(polled_.data(), waiting, &left, nullptr);
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
    for (const Connection& each : connections_)
      if (each.socket) ::shutdown(each.socket.get(), SHUT_WR);
    // A socket that is closed with unread bytes is reset, and what is still on its way from here would be thrown away with it.
    for (const Connection& each : connections_)
      while (each.socket && !acknowledged(each.socket.get()) && Clock::now() < until) ::poll(nullptr, 0, 1);
  }
  /// Whether the peer's system has all that was sent, the end included, or can never have it.
  static bool acknowledged(int socket) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
    return info.tcpi_state == TCP_FIN_WAIT2 || info.tcpi_state == TCP_TIME_WAIT || info.tcpi_state == TCP_CLOSE;
  }

  int rank_;
  std::vector<Connection> connections_;
  Strays strays_;
  std::unique_ptr<Staging> staging_;
  std::vector<pollfd> polled_;
  std::unique_ptr<Failure> failure_;
  unsigned looks_ = 0;
};

}  // namespace pdp::comm::tcp
