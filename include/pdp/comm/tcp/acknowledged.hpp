#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <pdp/core/requirements.hpp>

namespace pdp::comm::tcp {

/// Returns whether the peer's system has received all data and the end of the stream, or can never receive them. Call it after this side
/// was shut down for sending. Closing a socket with unread bytes resets the connection, which would discard data that is still on its way
/// to the peer.
inline bool acknowledged(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state == TCP_FIN_WAIT2 || info.tcpi_state == TCP_TIME_WAIT || info.tcpi_state == TCP_CLOSE;
}

}  // namespace pdp::comm::tcp
