#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>

namespace pdp::launch {

/// A network address with a port, IPv4 or IPv6, in the form of the socket API.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const {
    if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
  /// Returns the numeric address without the port.
  [[nodiscard]] std::string number() const {
    std::array<char, NI_MAXHOST> host{};
    const int error = ::getnameinfo(get(), size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
    return error == 0 ? host.data() : "an unknown address";
  }

  /// Returns whether this is a loopback address, which only this host can reach.
  [[nodiscard]] bool loopback() const {
    if (family() == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
    if (family() != AF_INET6) return false;
    const in6_addr& number6 = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&number6) || (IN6_IS_ADDR_V4MAPPED(&number6) && number6.s6_addr[12] == 127);
  }

  /// Returns the local address of a socket: its own end of a connection, or the address at which it listens. The result has size 0 if the
  /// system reports no address.
  static Address of(int socket) {
    Address address;
    address.size = sizeof address.storage;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) address.size = 0;
    return address;
  }
};

/// Returns all addresses of a host, given by name or number. If the name cannot be resolved, returns none and sets `why` to the reason.
/// `later` receives whether a later call may succeed because the name servers have not answered yet.
inline std::vector<Address> resolve(const std::string& host, std::uint16_t port, std::string& why, bool* later = nullptr) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  std::vector<Address> addresses;
  if (later != nullptr) *later = error == EAI_AGAIN;
  if (error != 0) {
    why = text("this host cannot resolve the name (", ::gai_strerror(error), ")");
    return addresses;
  }
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace pdp::launch
