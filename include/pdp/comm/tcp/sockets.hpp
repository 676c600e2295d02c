#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/message/stream/links.hpp>
#include <pdp/comm/message/stream/outbox.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/tcp/acknowledged.hpp>
#include <pdp/comm/tcp/mesh.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::tcp {

/// TCP connections to other ranks, as streams of messages.
class Sockets {
 public:
  /// Uses open connections: one for each other rank, in the order of ranks, and an empty Descriptor at the index of this rank.
  explicit Sockets(std::vector<Descriptor> sockets) : Sockets{sockets.size(), nullptr} {
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) lines_[rank].socket = std::move(sockets[rank]);
  }
  /// Uses connections that the mesh makes when they are first wanted; none if `mesh` is null.
  Sockets(std::size_t size, std::unique_ptr<Mesh> mesh) : lines_(size), mesh_{std::move(mesh)} {
    polled_.reserve(size + 1);
    if (size > 1) staging_ = std::make_unique<Staging>();
  }

  [[nodiscard]] int size() const { return as_int(lines_.size()); }
  [[nodiscard]] bool open(int peer) const { return static_cast<bool>(lines_[as_size(peer)].socket); }

  void want(int peer) {
    if (mesh_) mesh_->want(peer);
  }
  [[nodiscard]] bool news() const { return mesh_ && mesh_->news(); }
  stream::News take_news() {
    stream::News news;
    for (Mesh::Arrival& each : mesh_->take(news)) lines_[as_size(each.rank)].socket = std::move(each.socket);
    return news;
  }
  void tell(const Failure& failure) {
    if (mesh_) mesh_->tell(failure);
  }
  void heartbeat(Duration duration) {
    if (mesh_) mesh_->heartbeat(duration);
  }

  bool read(int peer, stream::Inbox& inbox, stream::Strays& strays) {
    Line& line = lines_[as_size(peer)];
    bool moved = false;
    for (int reads = 0; reads < reads_at_once && !inbox.fault() && !inbox.ended(); ++reads) {
      std::byte* const staged = staging_->bytes.data();
      std::memcpy(staged, line.carry.data(), line.carried);
      const std::span<std::byte> straight = inbox.straight();
      std::array<iovec, 2> parts{iovec{straight.data(), straight.size()},
                                 iovec{staged + line.carried, staged_bytes(inbox, straight.size()) - line.carried}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      const ssize_t count = ::recvmsg(line.socket.get(), &message, MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) break;
      moved = true;
      if (count <= 0) {
        inbox.closed();
        break;
      }
      const std::size_t bytes = as_size(count), placed = std::min(bytes, straight.size());
      if (placed > 0) inbox.placed(placed);
      const std::size_t there = line.carried + bytes - placed, taken = inbox.take(staged, there, strays);
      line.carried = inbox.fault() ? 0 : there - taken;
      std::memcpy(line.carry.data(), staged + taken, line.carried);
      if (bytes < parts[0].iov_len + parts[1].iov_len) break;
    }
    return moved;
  }

  std::size_t write(int peer, std::span<iovec, 2> parts) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    while (true) {
      const ssize_t count = ::sendmsg(lines_[as_size(peer)].socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) return as_size(count);
      if (errno == EAGAIN) return 0;
      if (errno != EINTR) return stream::gone;
    }
  }

  /// Fills in the entries to poll: one for each rank, and one for news.
  void poll_for(std::span<const stream::Interest> interests, std::vector<pollfd>& polled) const {
    polled.clear();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto events = static_cast<short>((interests[i].read ? POLLIN : 0) | (interests[i].write ? POLLOUT : 0));
      polled.push_back({.fd = events != 0 ? lines_[i].socket.get() : -1, .events = events, .revents = 0});
    }
    polled.push_back({.fd = mesh_ ? mesh_->descriptor() : -1, .events = POLLIN, .revents = 0});
  }
  bool wait(std::span<stream::Interest> interests, TimePoint until) {
    poll_for(interests, polled_);
    const timespec left = time_left(until);
    if (::ppoll(polled_.data(), polled_.size(), &left, nullptr) <= 0) return false;
    for (std::size_t i = 0; i < lines_.size(); ++i) interests[i].ready = polled_[i].revents != 0;
    return true;
  }

  void leave(TimePoint until) noexcept {
    for (const Line& each : lines_)
      if (each.socket) ::shutdown(each.socket.get(), SHUT_WR);
    for (const Line& each : lines_)
      while (each.socket && !acknowledged(each.socket.get()) && Clock::now() < until) ::poll(nullptr, 0, 1);
    if (mesh_) mesh_->leave(until);
  }

 private:
  using Frame = stream::Frame;
  static constexpr int reads_at_once = 4;
  static constexpr std::size_t small_read = 16 * 1024;  // bytes; used if the next message may be short, or may not need staging

  /// Scratch memory for bytes that cannot be received in place. All connections of a rank share it: it is empty between two reads, because
  /// a remainder that is too short to use is kept with its connection.
  struct Staging {
    alignas(64) std::array<std::byte, Frame::capacity + 2 * sizeof(Frame)> bytes;
  };
  struct Line {
    Descriptor socket;
    std::array<std::byte, sizeof(Frame)> carry;  // received, but incomplete: the beginning of a header or of an element
    std::size_t carried = 0;
  };

  /// Returns how many bytes staging may hold after the next read, including those carried over. `straight`: the bytes that can be received
  /// in place.
  static std::size_t staged_bytes(const stream::Inbox& inbox, std::size_t straight) {
    if (straight > 0) return inbox.more_follows() ? sizeof(Frame) : small_read;
    return std::max(small_read, inbox.frame_left() + sizeof(Frame));
  }

  std::vector<Line> lines_;
  std::unique_ptr<Staging> staging_;
  std::vector<pollfd> polled_;
  std::unique_ptr<Mesh> mesh_;
};

static_assert(stream::Links<Sockets>);

}  // namespace pdp::comm::tcp
