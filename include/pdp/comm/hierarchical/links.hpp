#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/message/stream/links.hpp>
#include <pdp/comm/shm/rings.hpp>
#include <pdp/comm/tcp/sockets.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::hierarchical {

/// The streams of one rank in a world of several hosts: rings to the ranks of its own host, sockets to all others. All ranks form one
/// world: failures, the order of messages and the comparison of calls do not depend on what connects two ranks.
class HostLinks {
 public:
  using Meetings = shm::Rings::Meetings;

  /// `rings`: to the ranks of this host; empty if this rank is alone there. `sockets`: to all other ranks, indexed by world rank.
  HostLinks(std::optional<shm::Rings> rings, tcp::Sockets sockets) : rings_{std::move(rings)}, sockets_{std::move(sockets)} {
    for (int peer = 0; peer < size(); ++peer) seats_.push_back(rings_ ? rings_->seat_of(peer) : -1);
    if (rings_) near_.resize(as_size(rings_->size()));
    all_near_ = rings_ && rings_->size() == size();
  }

  [[nodiscard]] int size() const { return sockets_.size(); }
  [[nodiscard]] bool open(int peer) const { return near(peer) ? rings_->open(seat(peer)) : sockets_.open(peer); }
  void want(int peer) {
    if (!near(peer)) sockets_.want(peer);
  }
  [[nodiscard]] bool news() const { return sockets_.news() || (rings_ && rings_->news()); }
  stream::News take_news() { return sockets_.news() ? sockets_.take_news() : rings_->take_news(); }
  void tell(const Failure& failure) { sockets_.tell(failure); }
  void heartbeat(Duration duration) {
    sockets_.heartbeat(duration);
    if (rings_) rings_->heartbeat(duration);
  }
  bool read(int peer, stream::Inbox& inbox, stream::Strays& strays) {
    return near(peer) ? rings_->read(seat(peer), inbox, strays) : sockets_.read(peer, inbox, strays);
  }
  std::size_t write(int peer, std::span<iovec, 2> parts) {
    return near(peer) ? rings_->write(seat(peer), parts) : sockets_.write(peer, parts);
  }

  bool wait(std::span<stream::Interest> interests, TimePoint until) {
    if (!rings_) return sockets_.wait(interests, until);
    if (all_near_) return rings_->wait(interests, until);
    while (true) {
      if (ready(interests)) return true;
      const TimePoint now = Clock::now();
      if (now >= until) return false;
      rings_->lie_down();
      const bool come = near_ready(interests);
      if (!come) {
        sockets_.poll_for(interests, polled_);
        polled_.push_back({.fd = rings_->descriptor(), .events = POLLIN, .revents = 0});
        const timespec left = time_left(std::min(until, now + shm::Processes::pulse));
        ::ppoll(polled_.data(), polled_.size(), &left, nullptr);
      }
      rings_->get_up();
    }
  }
  void leave(TimePoint until) noexcept {
    if (rings_) rings_->leave(until);
    sockets_.leave(until);
  }

  /// Returns whether a peer's stream may hold new data.
  [[nodiscard]] bool unread(int peer) const { return !near(peer) || rings_->unread(seat(peer)); }
  [[nodiscard]] Meetings& meetings() { return rings_ ? rings_->meetings() : none_; }
  [[nodiscard]] const Meetings& meetings() const { return rings_ ? rings_->meetings() : none_; }
  void add_group(const GroupPlace& place, std::vector<shm::Memory> boards) { rings_->add_group(place, std::move(boards)); }

 private:
  [[nodiscard]] int seat(int peer) const { return seats_[as_size(peer)]; }
  [[nodiscard]] bool near(int peer) const { return seat(peer) >= 0; }

  bool ready(std::span<stream::Interest> interests) {
    const bool far = sockets_.wait(interests, Clock::time_point{});
    if (!far)
      for (stream::Interest& each : interests) each.ready = false;
    return near_ready(interests) || far;
  }
  bool near_ready(std::span<stream::Interest> interests) {
    for (std::size_t peer = 0; peer < seats_.size(); ++peer)
      if (seats_[peer] >= 0) near_[as_size(seats_[peer])] = interests[peer];
    const bool any = rings_->ready(near_);
    for (std::size_t peer = 0; peer < seats_.size(); ++peer)
      if (seats_[peer] >= 0) interests[peer].ready = near_[as_size(seats_[peer])].ready;
    return any;
  }

  std::optional<shm::Rings> rings_;
  tcp::Sockets sockets_;
  Meetings none_;
  bool all_near_ = false;
  std::vector<int> seats_;  // the seat of each world rank in the rings' segment; -1 if the rank is on another host
  std::vector<stream::Interest> near_;
  std::vector<pollfd> polled_;
};

static_assert(stream::GroupLinks<HostLinks>);

}  // namespace pdp::comm::hierarchical
