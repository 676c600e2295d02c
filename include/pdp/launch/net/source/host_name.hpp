#pragma once

/// Definitions for pdp/launch/net/host_name.hpp; see pdp/core/separate_compilation.hpp.

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/net/host_name.hpp>

namespace pdp::launch {

namespace detail {

/// Returns the IPv4 address that `host` spells, in host byte order; nothing if it spells none. Accepts short forms (127.1) and other bases
/// (0x7f000001), as the system does.
PDP_INLINE std::optional<std::uint32_t> parse_ipv4(const std::string& host) {
  in_addr number{};
  // inet_aton ignores everything after a space.
  if (std::ranges::any_of(host, [](char letter) { return static_cast<unsigned char>(letter) <= ' '; })) return std::nullopt;
  if (::inet_aton(host.c_str(), &number) == 0) return std::nullopt;
  return ntohl(number.s_addr);
}

/// Returns why no machine can have this IPv4 address; empty if one can.
PDP_INLINE std::string_view why_no_host(std::uint32_t address) {
  if (address == INADDR_ANY) return "which is the wildcard address";
  if (address >> 24 == 0) return "which cannot be a machine's address (0.0.0.0/8 means this network)";
  if (address >> 28 == 0xe || address == INADDR_BROADCAST) return "which is a multicast or broadcast address";
  if (address >> 28 == 0xf) return "which cannot be a machine's address (240.0.0.0/4 is reserved)";
  return {};
}

/// Returns whether `scope`, the part after the % of an IPv6 address, is the name or number of an interface of this machine. If the address
/// is not link-local (`of_link` is false), it may not name an interface, and the system accepts any number.
PDP_INLINE bool is_scope(const std::string& scope, bool of_link) {
  if (of_link && ::if_nametoindex(scope.c_str()) != 0) return true;
  unsigned index = 0;
  const auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), index);
  if (error != std::errc{} || end != scope.data() + scope.size()) return false;
  std::array<char, IF_NAMESIZE> name{};
  return !of_link || ::if_indextoname(index, name.data()) != nullptr;
}

/// Returns why no machine can be reached at `host`, which contains a ':'; empty if one can.
PDP_INLINE std::string_view why_no_host6(const std::string& host) {
  const std::size_t percent = std::min(host.find('%'), host.size());
  in6_addr number{};
  if (::inet_pton(AF_INET6, host.substr(0, percent).c_str(), &number) != 1)
    return "which is not an IPv6 address, and host names cannot contain ':'";
  if (IN6_IS_ADDR_UNSPECIFIED(&number)) return "which is the wildcard address";
  if (IN6_IS_ADDR_MULTICAST(&number)) return "which is a multicast address";
  if (IN6_IS_ADDR_V4MAPPED(&number)) {
    std::uint32_t mapped = 0;
    for (std::size_t i = 12; i < 16; ++i) mapped = mapped << 8 | number.s6_addr[i];
    if (const std::string_view why = why_no_host(mapped); !why.empty()) return why;
  }
  const bool of_link = IN6_IS_ADDR_LINKLOCAL(&number);
  if (percent == host.size()) return of_link ? "which is link-local, so an interface of this machine must follow, as in fe80::1%eth0" : "";
  if (!is_scope(host.substr(percent + 1), of_link))
    return of_link ? "but this machine has no interface with the name or number after the %"
                   : "but only an address that begins with fe80: may name an interface after a %";
  return {};
}

}  // namespace detail

PDP_INLINE bool is_address(const std::string& host) {
  in6_addr number{};
  return detail::parse_ipv4(host) || ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &number) == 1;
}

PDP_INLINE void check_host(std::string_view given_for, const std::string& host) {
  const auto refuse = [&](std::string_view why) {
    throw UsageError{
        text(given_for, " is ", in_quotes(host), ", ", why, "; it must be the name or address of the machine on which rank 0 runs")};
  };
  if (host.find(':') != std::string::npos) {
    if (const std::string_view why = detail::why_no_host6(host); !why.empty()) refuse(why);
    return;
  }
  if (const auto address = detail::parse_ipv4(host)) {
    if (const std::string_view why = detail::why_no_host(*address); !why.empty()) refuse(why);
    return;
  }
  constexpr std::size_t longest_name = 253, longest_label = 63;
  const std::string_view name = std::string_view{host}.substr(0, host.ends_with('.') ? host.size() - 1 : host.size());
  if (name.empty() || name.size() > longest_name) refuse("which is not a host name: host names have 1 to 253 characters");
  std::string_view label;
  for (std::size_t begin = 0; begin <= name.size(); begin += label.size() + 1) {
    label = name.substr(begin, name.find('.', begin) - begin);
    if (label.empty() || label.size() > longest_label) refuse("which is not a host name: each part of a host name has 1 to 63 characters");
    const auto in_name = [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '-' ||
             letter == '_';
    };
    if (!std::ranges::all_of(label, in_name)) refuse("which contains a character that is not allowed in host names and addresses");
  }
  // No top-level domain is a number (RFC 3696), so this was meant as an address.
  if (std::ranges::all_of(label, [](char letter) { return letter >= '0' && letter <= '9'; }))
    refuse("which is not an IPv4 address: those have four numbers from 0 to 255");
}

}  // namespace pdp::launch
