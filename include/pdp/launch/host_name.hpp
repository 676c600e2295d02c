#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>

namespace pdp::launch {

/// Whether a host is given by an address of IPv4 or IPv6, such as 10.0.0.1 or fe80::1%eth0, and not by a name.
inline bool is_address(const std::string& host) {
  in6_addr number{};
  return ::inet_pton(AF_INET, host.c_str(), &number) == 1 || ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &number) == 1;
}

/// Throws UsageError, which begins with `given_for`, if no host can be reached by that name or address, so that it is not tried until a
/// deadline: if it is malformed, or an address that means every host, or many.
inline void check_host(std::string_view given_for, const std::string& host) {
  const auto refuse = [&](std::string_view why) {
    throw UsageError{
        text(given_for, " is ", in_quotes(host), ", ", why, "; it must be the name or address of the machine on which rank 0 runs")};
  };
  in_addr number{};
  in6_addr number6{};
  if (host.find(':') != std::string::npos) {
    if (!is_address(host)) refuse("which is no address of IPv6, and a name has no ':'");
    static_cast<void>(::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &number6));
    if (IN6_IS_ADDR_UNSPECIFIED(&number6)) refuse("which means any address of a machine");
    if (IN6_IS_ADDR_MULTICAST(&number6)) refuse("which is the address of a group of machines");
    return;
  }
  if (::inet_pton(AF_INET, host.c_str(), &number) == 1) {
    const std::uint32_t bits = ntohl(number.s_addr);
    if (bits == INADDR_ANY) refuse("which means any address of a machine");
    if (bits >> 28 == 0xe || bits == INADDR_BROADCAST) refuse("which is the address of a group of machines");
    return;
  }
  constexpr std::size_t longest_name = 253, longest_label = 63;
  const std::string_view name = std::string_view{host}.substr(0, host.ends_with('.') ? host.size() - 1 : host.size());
  if (name.empty() || name.size() > longest_name) refuse("which is no name: one has 1 to 253 letters");
  std::string_view label;
  for (std::size_t begin = 0; begin <= name.size(); begin += label.size() + 1) {
    label = name.substr(begin, name.find('.', begin) - begin);
    if (label.empty() || label.size() > longest_label) refuse("which is no name: each of its parts has 1 to 63 letters");
    const auto in_name = [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '-' ||
             letter == '_';
    };
    if (!std::ranges::all_of(label, in_name)) refuse("which has a letter that names and addresses do not have");
  }
  // No domain is a number (RFC 3696), so it was meant as an address. Short forms such as 127.1 are addresses, too.
  const bool digits = std::ranges::all_of(label, [](char letter) { return letter >= '0' && letter <= '9'; });
  if (digits && ::inet_aton(host.c_str(), &number) == 0) refuse("which is no address of IPv4: that is four numbers from 0 to 255");
}

}  // namespace pdp::launch
