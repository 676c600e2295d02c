#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/launch/net/host_name.hpp>
#include <pdp/launch/net/interface.hpp>
#include <pdp/launch/net/slurm_node.hpp>
#include <pdp/launch/place.hpp>

namespace pdp::launch {

/// The addresses of a rank and of the job's store.
struct Reach {
  std::string own{};    // at which this rank listens for peers; empty: the local address of its connection to the store
  std::string store{};  // at which this rank hosts the store or looks for it; empty if the store is a folder

  /// A function that asks Slurm for the address of a node. It returns nothing if Slurm gives none before the deadline.
  using NodeAddress =
      std::function<std::optional<std::string>(const Variables& variable, const std::string& node, comm::TimePoint deadline)>;

  /// Finds the addresses for a rank at `place`.
  ///
  /// PDP_INTERFACE selects the interface at which the rank listens, by its name or an address. If the name in MASTER_ADDR has several
  /// addresses and PDP_INTERFACE selects one of them, the store listens there, too. Slurm's name for the node of rank 0 may be one that
  /// only Slurm can resolve: `node_address` then asks Slurm.
  ///
  /// `together`: whether all ranks are known to be on this machine. `others_may_join`: whether ranks on other machines could prove that
  /// they belong to the job. If so, and the name in MASTER_ADDR means a loopback address here, the store uses an address that other
  /// machines can reach. `deadline`: of the start; name servers and Slurm may take until then to answer.
  ///
  /// Throws UsageError if PDP_INTERFACE selects no address, or if the node of rank 0 has none.
  static Reach from(const Variables& variable, const JobPlace& place, comm::TimePoint deadline, bool together, bool others_may_join = false,
                    const NodeAddress& node_address = slurm_node_address);
};

namespace detail {

/// Returns whether the name means a loopback address on every host, unlike a host's own name.
inline bool means_loopback(std::string_view name) {
  return name.starts_with("localhost") || name.ends_with(".localhost") || name == "ip6-localhost" || name == "ip6-loopback";
}

/// Returns the address at which other hosts reach the store, if this host resolves the store's name to a loopback address. Many hosts do so
/// with their own name (127.0.1.1 in Debian's /etc/hosts), and other hosts do not. Otherwise, or if there is no such address, returns an
/// empty string: the name is then used as it is.
///
/// `addresses`: those to which this host resolves the name. `outside`: the address of this host to use if all of these are loopback.
inline std::string address_for_other_hosts(const std::vector<Address>& addresses, const std::optional<Address>& outside) {
  if (std::ranges::none_of(addresses, &Address::loopback)) return {};
  const auto found = std::ranges::find_if_not(addresses, &Address::loopback);
  if (found != addresses.end()) return found->number();
  return outside ? outside->number() : std::string{};
}

/// Returns the addresses of `store`. If `store` is Slurm's name of the node of rank 0 and this host cannot resolve it, asks Slurm and sets
/// `store` to the address that Slurm gives. If the name servers have not answered, asks them again until the deadline. Throws UsageError if
/// the node still has no address.
inline std::vector<Address> find_node(const Variables& variable, const JobPlace& place, comm::TimePoint deadline,
                                      const Reach::NodeAddress& node_address, std::string& store) {
  std::string why;
  bool later = false;
  std::vector<Address> addresses = resolve(store, place.master_port, why, &later);
  if (!addresses.empty() || !place.master_by_name || store != place.master_address) return addresses;
  std::string ignored;
  const std::optional<std::string> told = node_address(variable, store, deadline);
  if (told) addresses = resolve(*told, place.master_port, ignored);
  if (!addresses.empty()) {
    store = *told;
    return addresses;
  }
  while (addresses.empty() && later && comm::Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    addresses = resolve(store, place.master_port, why, &later);
  }
  if (addresses.empty())
    throw UsageError{text("rank 0 runs on Slurm's node ", in_quotes(store), ", but ", why, ", and Slurm gives ",
                          told ? text("the address ", in_quotes(*told)) : "no address", " for it (scontrol show node ", in_quotes(store),
                          "); set MASTER_ADDR to the address of that node, the same for all ranks")};
  return addresses;
}

}  // namespace detail

inline Reach Reach::from(const Variables& variable, const JobPlace& place, comm::TimePoint deadline, bool together, bool others_may_join,
                         const NodeAddress& node_address) {
  const char* wanted = variable("PDP_INTERFACE");
  std::optional<Address> own;
  if (wanted != nullptr && *wanted != '\0') own = address_of_interface(wanted, interfaces());
  const auto or_of_default_route = [&] { return own ? own : address_of_default_route(interfaces()); };
  const auto number = [](const std::optional<Address>& address) { return address ? address->number() : std::string{}; };

  if (!place.folder.empty()) return {.own = number(together ? own : or_of_default_route())};
  Reach reach{.own = number(own), .store = place.master_address};
  std::string ignored;
  if (together && place.master_by_name && resolve(reach.store, place.master_port, ignored).empty()) reach.store = "127.0.0.1";
  const bool host_is_named =
      !together && (place.master_by_name || (others_may_join && !is_address(reach.store) && !detail::means_loopback(reach.store)));
  if ((!own || !place.hosts_store) && !host_is_named) return reach;
  const std::vector<Address> addresses = detail::find_node(variable, place, deadline, node_address, reach.store);
  const auto is_own = [&](const Address& address) { return address.number() == reach.own; };
  if (own && place.hosts_store && std::ranges::any_of(addresses, is_own)) reach.store = reach.own;
  if (!host_is_named) return reach;
  const std::optional<Address> outside = own && !own->loopback() ? own : address_of_default_route(interfaces());
  if (const std::string address = detail::address_for_other_hosts(addresses, outside); !address.empty()) reach.store = address;
  return reach;
}

}  // namespace pdp::launch
