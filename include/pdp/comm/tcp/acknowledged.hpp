#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace pdp::comm::tcp {

/// Whether the peer's system has all that was sent before the sending side was shut down, the end included, or can never have it. A socket
/// that is closed with unread bytes is reset, and what is still on its way from here would be thrown away with it.
inline bool acknowledged(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state == TCP_FIN_WAIT2 || info.tcpi_state == TCP_TIME_WAIT || info.tcpi_state == TCP_CLOSE;
}

}  // namespace pdp::comm::tcp
