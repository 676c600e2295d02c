#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
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

#include <pdp/comm/descriptor.hpp>
#include <pdp/comm/stream/links.hpp>
#include <pdp/comm/stream/outbox.hpp>
#include <pdp/comm/waiting.hpp>

namespace pdp::comm::tcp {

/// One TCP connection to each other rank, as the streams that messages travel on.
class Sockets {
 public:
  /// Over connections that are open: one for each other rank, in the order of ranks, and nothing at this rank's own place.
  explicit Sockets(std::vector<Descriptor> sockets) : polled_(sockets.size()) {
    if (sockets.size() > 1) staging_ = std::make_unique<Staging>();
    for (Descriptor& socket : sockets) lines_.push_back({std::move(socket), {}, 0});
  }

  [[nodiscard]] int size() const { return static_cast<int>(lines_.size()); }
  [[nodiscard]] bool open(int peer) const { return static_cast<bool>(lines_[static_cast<std::size_t>(peer)].socket); }

  bool read(int peer, stream::Inbox& inbox, stream::Strays& strays) {
    Line& line = lines_[static_cast<std::size_t>(peer)];
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
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      moved = true;
      if (count <= 0) {
        inbox.closed();
        break;
      }
      const std::size_t bytes = static_cast<std::size_t>(count), placed = std::min(bytes, straight.size());
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
      const ssize_t count = ::sendmsg(lines_[static_cast<std::size_t>(peer)].socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
      if (errno != EINTR) return stream::gone;
    }
  }

  bool wait(std::span<stream::Interest> interests, TimePoint until) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const short events = static_cast<short>((interests[i].read ? POLLIN : 0) | (interests[i].write ? POLLOUT : 0));
      polled_[i] = {.fd = events != 0 ? lines_[i].socket.get() : -1, .events = events, .revents = 0};
    }
    const timespec left = time_left(until);
    if (::ppoll(polled_.data(), polled_.size(), &left, nullptr) <= 0) return false;
    for (std::size_t i = 0; i < lines_.size(); ++i) interests[i].ready = polled_[i].revents != 0;
    return true;
  }

  void leave(TimePoint until) noexcept {
    for (const Line& each : lines_)
      if (each.socket) ::shutdown(each.socket.get(), SHUT_WR);
    // A socket that is closed with unread bytes is reset, and what is still on its way from here would be thrown away with it.
    for (const Line& each : lines_)
      while (each.socket && !acknowledged(each.socket.get()) && Clock::now() < until) ::poll(nullptr, 0, 1);
  }

 private:
  using Frame = stream::Frame;
  static constexpr int reads_at_once = 4;
  static constexpr std::size_t small_read = 16 * 1024;  // where the next message may be short, or not be for staging at all

  /// Where bytes go that may not go straight to their place. One serves all connections of a rank: between two reads nothing is left here,
  /// as what is too short to be used is carried along by its connection.
  struct Staging {
    alignas(64) std::array<std::byte, Frame::capacity + 2 * sizeof(Frame)> bytes;
  };
  struct Line {
    Descriptor socket;
    std::array<std::byte, sizeof(Frame)> carry;  // the beginning of a header or of an element
    std::size_t carried;
  };

  /// Bytes to read to staging, what was carried included, given what goes straight to its place.
  static std::size_t staged_bytes(const stream::Inbox& inbox, std::size_t straight) {
    if (straight > 0) return inbox.more_follows() ? sizeof(Frame) : small_read;
    return std::max(small_read, inbox.frame_left() + sizeof(Frame));
  }

  /// Whether the peer's system has all that was sent, the end included, or can never have it.
  static bool acknowledged(int socket) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
    return info.tcpi_state == TCP_FIN_WAIT2 || info.tcpi_state == TCP_TIME_WAIT || info.tcpi_state == TCP_CLOSE;
  }

  std::vector<Line> lines_;
  std::unique_ptr<Staging> staging_;
  std::vector<pollfd> polled_;
};

static_assert(stream::Links<Sockets>);

}  // namespace pdp::comm::tcp
