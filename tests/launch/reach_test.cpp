#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pdp/launch/net/reach.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;
using launch::Interface;

namespace {

Interface interface(const std::string& name, const std::string& number) {
  std::string why;
  return {.name = name, .address = launch::resolve(number, 0, why).at(0)};
}
const std::vector<Interface> machine{interface("lo", "127.0.0.1"),  interface("lo", "::1"),           interface("eth0", "fd00::7"),
                                     interface("eth0", "10.0.0.7"), interface("eth0", "10.0.0.8"),    interface("ib0", "fe80::1"),
                                     interface("ib0", "fd01::7"),   interface("ib0", "2001:db8::77"), interface("eth1", "fe80::2")};
std::string chosen(const std::string& wanted) { return launch::address_of_interface(wanted, machine).number(); }

std::vector<launch::Address> addresses(const std::vector<std::string>& numbers) {
  std::vector<launch::Address> found;
  std::string why;
  for (const std::string& number : numbers) found.push_back(launch::resolve(number, 0, why).at(0));
  return found;
}
pdp::comm::TimePoint soon() { return pdp::comm::Clock::now() + std::chrono::seconds{5}; }
launch::Reach reach(const launch::JobPlace& place, bool together = false, const std::string& interface = {}) {
  return launch::Reach::from([&](const char* name) { return std::string{name} == "PDP_INTERFACE" ? interface.c_str() : nullptr; }, place,
                             soon(), together);
}
/// The address at which other machines reach this one. Empty if there is none.
std::string outside() {
  const auto address = launch::address_of_default_route(launch::interfaces());
  return address ? address->number() : "";
}

}  // namespace

TEST_CASE("address_of_interface accepts a name or an address, and prefers the first IPv4 address of a name", "[launch][reach]") {
  CHECK(chosen("lo") == "127.0.0.1");
  CHECK(chosen("eth0") == "10.0.0.7");
  CHECK(chosen("ib0") == "fd01::7");
  for (const char* number : {"10.0.0.8", "fd00::7", "::1", "2001:db8::77"}) CHECK(chosen(number) == number);
}

TEST_CASE("address_of_interface rejects missing and link-local interfaces and lists the usable ones", "[launch][reach]") {
  for (const char* wanted : {"eth7", "10.0.0.9", "eth1", "fe80::1", "ETH0"}) {
    CHECK_THROWS_AS(chosen(wanted), pdp::UsageError);
    CHECK_THROWS_WITH(chosen(wanted),
                      Contains(pdp::text("PDP_INTERFACE is '", wanted, "'")) && Contains("eth0 (10.0.0.7)") && Contains("ib0 (fd01::7)"));
  }
}

TEST_CASE("launch::interfaces lists this machine's loopback address and the address of its default route", "[launch][reach]") {
  const auto here = launch::interfaces();
  CHECK(std::ranges::any_of(here, [](const Interface& each) { return each.address.loopback(); }));
  if (outside().empty()) {
    WARN("this machine has no address in a network");
    return;
  }
  CHECK(std::ranges::any_of(here, [](const Interface& each) { return each.address.number() == outside(); }));
}

TEST_CASE("Reach keeps MASTER_ADDR and sets no address of its own if PDP_INTERFACE is not set", "[launch][reach]") {
  for (const bool hosts : {true, false}) {
    const launch::Reach none = reach({.master_address = "127.0.0.1", .master_port = 1, .hosts_store = hosts});
    CHECK(none.own.empty());
    CHECK(none.store == "127.0.0.1");
  }
}

TEST_CASE("PDP_INTERFACE sets the address of a rank, and of a hosted store if MASTER_ADDR is a name", "[launch][reach]") {
  const launch::Reach data = reach({.master_address = "192.0.2.1", .master_port = 1, .hosts_store = true}, false, "lo");
  CHECK(data.own == "127.0.0.1");
  CHECK(data.store == "192.0.2.1");  // MASTER_ADDR is an address, so nothing is left to select
  std::string why;
  if (launch::resolve("localhost", 1, why).empty()) {
    WARN("this machine does not know the name localhost");
    return;
  }
  CHECK(reach({.master_address = "localhost", .master_port = 1, .hosts_store = true}, false, "127.0.0.1").store == "127.0.0.1");
  CHECK(reach({.master_address = "localhost", .master_port = 1}, false, "127.0.0.1").store == "localhost");
  CHECK_THROWS_AS(reach({.master_address = "localhost", .master_port = 1}, false, "eth77"), pdp::UsageError);
}

TEST_CASE("Reach replaces a node name that means loopback by the address of the default route", "[launch][reach]") {
  std::string why;
  if (launch::resolve("localhost", 1, why).empty()) {
    WARN("this machine does not know the name localhost");
    return;
  }
  const launch::JobPlace named{.master_address = "localhost", .master_port = 1, .master_by_name = true};
  CHECK(reach(named).store == (outside().empty() ? "localhost" : outside()));
  CHECK(reach(named, true).store == "localhost");
  CHECK(reach(named, false, "lo").store == (outside().empty() ? "localhost" : outside()));
  CHECK(reach({.master_address = "192.0.2.1", .master_port = 1, .master_by_name = true}).store == "192.0.2.1");
}

TEST_CASE("address_for_other_hosts replaces a loopback address by one that other hosts can reach", "[launch][reach]") {
  const auto chosen = [](const std::vector<std::string>& of_name, const std::optional<launch::Address>& outside) {
    return launch::detail::address_for_other_hosts(addresses(of_name), outside);
  };
  const auto outside = addresses({"10.0.0.7"}).at(0);
  CHECK(chosen({"127.0.1.1"}, outside) == "10.0.0.7");
  CHECK(chosen({"127.0.1.1", "::1"}, outside) == "10.0.0.7");
  CHECK(chosen({"127.0.1.1", "10.0.0.9"}, outside) == "10.0.0.9");
  CHECK(chosen({"10.0.0.9"}, outside).empty());
  CHECK(chosen({"127.0.1.1"}, std::nullopt).empty());
  CHECK(chosen({}, outside).empty());
  for (const char* name : {"localhost", "localhost.localdomain", "a.localhost", "ip6-localhost"})
    CHECK(launch::detail::means_loopback(name));
  for (const char* name : {"node07", "my-localhost", "local"}) CHECK_FALSE(launch::detail::means_loopback(name));
}

TEST_CASE("Reach asks Slurm for the address of a node whose name does not resolve", "[launch][reach]") {
  std::string why;
  if (!launch::resolve("pdp-no-such-node.invalid", 1, why).empty()) {
    WARN("this machine knows every name");
    return;
  }
  const launch::JobPlace place{.master_address = "pdp-no-such-node.invalid", .master_port = 1, .master_by_name = true};
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  std::string asked;
  const auto told = [&asked](const std::optional<std::string>& address) {
    return [&asked, address](const launch::Variables&, const std::string& node, pdp::comm::TimePoint) {
      asked = node;
      return address;
    };
  };
  CHECK(launch::Reach::from(nothing, place, soon(), false, true, told("192.0.2.7")).store == "192.0.2.7");
  CHECK(asked == "pdp-no-such-node.invalid");
  CHECK(launch::Reach::from(nothing, place, soon(), true, true, told(std::nullopt)).store == "127.0.0.1");
  for (const std::optional<std::string>& useless : {std::optional<std::string>{}, std::optional<std::string>{"also-not.invalid"}})
    CHECK_THROWS_WITH(launch::Reach::from(nothing, place, soon(), false, true, told(useless)),
                      Contains("'pdp-no-such-node.invalid'") && Contains("set MASTER_ADDR"));
}

TEST_CASE("Ranks listen at the address of the default route if the store is a folder", "[launch][reach]") {
  CHECK(reach({.folder = "/shared/job"}).own == outside());
  CHECK(reach({.folder = "/shared/job"}).store.empty());
  CHECK(reach({.folder = "/shared/job"}, true).own.empty());
  CHECK(reach({.folder = "/shared/job"}, true, "lo").own == "127.0.0.1");
}
