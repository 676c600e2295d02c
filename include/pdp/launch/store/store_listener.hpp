#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/net/address.hpp>

namespace pdp::launch {

/// The error that another program uses the port on which a store should listen.
class PortTaken : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Listens at one address. Port 0: the system chooses a free port. Throws PortTaken, or ConfigError if it cannot listen for another reason.
inline comm::Descriptor listen_for_store(const std::string& host, std::uint16_t port) {
  std::string why;
  int error = 0;
  for (const Address& address : resolve(host, port, why)) {
    comm::Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket) {
      error = errno;
      why = comm::describe_system_error(error);
      continue;
    }
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket.get(), address.get(), address.size) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) return socket;
    error = errno;
    why = std::strerror(error);
  }
  const std::string place = text(host, ", port ", port);
  if (error == EADDRINUSE)
    throw PortTaken{text("the job's store cannot listen at ", place,
                         ": the port is taken by another program, perhaps another job or an earlier one that has not ended; choose "
                         "another port, the same for all ranks")};
  if (error == EADDRNOTAVAIL)
    throw ConfigError{text("the job's store cannot listen at ", place,
                           ": this machine does not have that address; it must be an address of the machine on which rank 0 runs")};
  throw ConfigError{text("the job's store cannot listen at ", place, ": ", why)};
}

}  // namespace pdp::launch
