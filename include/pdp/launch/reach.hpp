#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <pdp/launch/address.hpp>
#include <pdp/launch/environment.hpp>
#include <pdp/launch/interface.hpp>

namespace pdp::launch {

/// By which addresses a rank and the job's store are reached, as far as that is not said by the connection between the two.
struct Reach {
  std::string own{};    // at which this rank listens for the others; empty: at that of its connection to the store
  std::string store{};  // where this rank hosts the store, or looks for it; empty where that is a folder

  static Reach from(const Variables& variable, const Place& place, bool together);
};

/// PDP_INTERFACE says at which of this machine's interfaces the rank listens: its name or an address. Where MASTER_ADDR is a name of
/// several addresses, the host of the store listens there, too. `together`: whether all ranks are known to be on this machine. Throws
/// UsageError.
inline Reach Reach::from(const Variables& variable, const Place& place, bool together) {
  const char* wanted = variable("PDP_INTERFACE");
  std::optional<Address> own;
  if (wanted != nullptr && *wanted != '\0') own = address_of_interface(wanted, interfaces());
  const auto or_of_default_route = [&] { return own ? own : address_of_default_route(interfaces()); };
  const auto number = [](const std::optional<Address>& address) { return address ? address->number() : std::string{}; };

  if (!place.folder.empty()) return {.own = number(together ? own : or_of_default_route())};
  Reach reach{.own = number(own), .store = place.master_address};
  if ((!own || !place.hosts_store) && (!place.master_by_name || together)) return reach;
  std::string ignored;
  const std::vector<Address> addresses = resolve(place.master_address, place.master_port, ignored);
  const auto is_own = [&](const Address& address) { return address.number() == reach.own; };
  if (own && place.hosts_store && std::ranges::any_of(addresses, is_own)) reach.store = reach.own;
  // Many hosts know their own name as a loopback address, while others know it as the one by which they reach them.
  if (place.master_by_name && !together && !addresses.empty() && std::ranges::all_of(addresses, &Address::loopback))
    if (const std::string outside = number(or_of_default_route()); !outside.empty()) reach.store = outside;
  return reach;
}

}  // namespace pdp::launch
