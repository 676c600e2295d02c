#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/net/address.hpp>

namespace pdp::launch {

/// An address of this machine and the network interface that has it.
struct Interface {
  std::string name;
  Address address{};

  /// Returns whether other machines can use the address. They cannot use an IPv6 link-local address.
  [[nodiscard]] bool can_be_told() const {
    if (address.family() != AF_INET6) return true;
    return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  }
};

/// Returns the IPv4 and IPv6 addresses of all interfaces that are up. Throws ConfigError if the system cannot list them.
inline std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw ConfigError{text("this machine's network interfaces cannot be listed: ", std::strerror(errno))};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner{list, &::freeifaddrs};
  std::vector<Interface> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    Interface interface { .name = each->ifa_name };
    if (each->ifa_addr->sa_family == AF_INET)
      interface.address.size = sizeof(sockaddr_in);
    else if (each->ifa_addr->sa_family == AF_INET6)
      interface.address.size = sizeof(sockaddr_in6);
    else
      continue;
    std::memcpy(&interface.address.storage, each->ifa_addr, interface.address.size);
    found.push_back(std::move(interface));
  }
  return found;
}

/// Returns a list of interfaces for a message, such as "lo (127.0.0.1), eth0 (10.0.0.1)".
inline std::string describe(std::span<const Interface> interfaces) {
  std::string words;
  for (const Interface& each : interfaces) words += text(words.empty() ? "" : ", ", each.name, " (", each.address.number(), ')');
  return words.empty() ? "none" : words;
}

/// Returns the address that PDP_INTERFACE selects, by the name of an interface or by one of its addresses. For a name, it is the first IPv4
/// address of the interface, else the first IPv6 address that is not link-local. Throws UsageError if there is none; the message lists the
/// interfaces.
inline Address address_of_interface(std::string_view wanted, std::span<const Interface> interfaces) {
  for (const bool by_number : {false, true}) {
    for (const int family : {AF_INET, AF_INET6})
      for (const Interface& each : interfaces)
        if (each.address.family() == family && each.can_be_told() && wanted == (by_number ? each.address.number() : each.name))
          return each.address;
  }
  throw UsageError{text("PDP_INTERFACE is ", in_quotes(wanted),
                        ", but no interface with that name or address is up on this machine; it has ", describe(interfaces))};
}

/// Returns the local address from which this machine sends on its default route. Without such a route, returns the first address that is
/// neither loopback nor link-local; nothing if there is none. Sends no packet.
inline std::optional<Address> address_of_default_route(std::span<const Interface> interfaces) {
  for (const char* anywhere : {"192.0.2.1", "2001:db8::1"}) {  // reserved for documentation: no host has them
    std::string ignored;
    for (const Address& far : resolve(anywhere, 9, ignored)) {
      const comm::Descriptor socket{::socket(far.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
      if (!socket || ::connect(socket.get(), far.get(), far.size) != 0) continue;
      if (const Address near = Address::of(socket.get()); near.size != 0 && !near.loopback()) return near;
    }
  }
  const auto found = std::ranges::find_if(interfaces, [](const Interface& each) { return !each.address.loopback() && each.can_be_told(); });
  return found != interfaces.end() ? std::optional{found->address} : std::nullopt;
}

}  // namespace pdp::launch
