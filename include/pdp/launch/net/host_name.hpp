#pragma once

#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Whether a host is given by an address of IPv4 or IPv6, such as 10.0.0.1 or fe80::1%eth0, and not by a name.
bool is_address(const std::string& host);

/// Throws UsageError, which begins with `given_for`, if no host can be reached by that name or address, so that it is not tried until a
/// deadline: if it is malformed, an address that no machine has, or one that means every host, or many.
void check_host(std::string_view given_for, const std::string& host);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/net/source/host_name.hpp>
#endif
