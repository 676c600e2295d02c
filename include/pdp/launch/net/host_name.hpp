#pragma once

#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Returns whether a host is given by an IPv4 or IPv6 address, such as 10.0.0.1 or fe80::1%eth0, and not by a name.
bool is_address(const std::string& host);

/// Throws UsageError if no host can be reached by that name or address, so that a rank does not try it until a deadline. Rejects malformed
/// names and addresses, addresses that no machine has, and addresses that mean any or several hosts. The message begins with `given_for`,
/// the option or variable. Does not resolve names.
void check_host(std::string_view given_for, const std::string& host);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/net/source/host_name.hpp>
#endif
