#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/message.hpp>
#include <pdp/comm/join/handshake/server.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

/// A connection to a store, from its acceptance on.
struct StoreGuest {
  comm::Descriptor socket;
  comm::TimePoint since;                             // when it was accepted
  std::unique_ptr<comm::handshake::Server> shake{};  // null after the handshake
  int rank = comm::handshake::no_rank;               // set by the handshake
  bool closed = false;                               // the server drops it then
  std::string in{}, out{};                           // bytes of an incomplete request; bytes that the socket has not taken yet
  std::optional<std::pair<std::string, comm::TimePoint>> waits_for{};  // key and deadline of a `wait` without an answer yet

  /// Returns whether the guest has proved which rank it is.
  [[nodiscard]] bool known() const { return rank != comm::handshake::no_rank; }
  /// Returns whether the guest has closed its connection, even if a request from it has not been read yet.
  [[nodiscard]] bool has_left() const {
    pollfd polled{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
    return closed || (::poll(&polled, 1, 0) == 1 && polled.revents != 0);
  }
  /// Answers the guest's request.
  void answer(StoreMessage::Kind kind, std::string_view value = {}) {
    waits_for.reset();
    out += encode({.kind = kind}, {}, value);
    flush();
  }
  /// Sends the bytes that the socket takes now. Sets `closed` if the connection has failed or too many bytes wait.
  void flush() {
    constexpr std::size_t most_unread = 2 * StoreMessage::longest_value;
    if (out.empty() || closed) return;
    const ssize_t sent = ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent > 0) out.erase(0, as_size(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) closed = true;
    if (out.size() > most_unread) closed = true;
  }
};

}  // namespace pdp::launch
