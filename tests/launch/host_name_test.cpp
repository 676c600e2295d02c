#include <net/if.h>

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/launch/net/host_name.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

TEST_CASE("check_host accepts names and addresses, and is_address tells them apart", "[launch][host_name]") {
  for (const char* host : {"node07", "a", "node-7.cluster.example.", "under_score", "10.0.0.1", "127.1", "0x7f000001", "0xa.1", "::1",
                           "::ffff:10.0.0.1", "fd00::7", "fd00::7%3", "7node", "1.node", "0xnode"})
    CHECK_NOTHROW(launch::check_host("MASTER_ADDR", host));
  CHECK(launch::is_address("10.0.0.1"));
  CHECK(launch::is_address("127.1"));
  CHECK(launch::is_address("0x7f.1"));
  CHECK_FALSE(launch::is_address("127.1 "));
  CHECK(launch::is_address("fe80::1%eth0"));
  CHECK_FALSE(launch::is_address("node07"));
}

TEST_CASE("check_host accepts an interface name or number only after a link-local address", "[launch][host_name]") {
  const struct if_nameindex* const all = ::if_nameindex();
  if (all == nullptr || all->if_name == nullptr) {
    WARN("this machine has no interface");
    return;
  }
  CHECK_NOTHROW(launch::check_host("MASTER_ADDR", pdp::text("fe80::1%", all->if_name)));
  CHECK_NOTHROW(launch::check_host("MASTER_ADDR", pdp::text("fe80::1%", all->if_index)));
  CHECK_THROWS_AS(launch::check_host("MASTER_ADDR", pdp::text("fd00::1%", all->if_name)), pdp::UsageError);
  ::if_freenameindex(const_cast<struct if_nameindex*>(all));
}

TEST_CASE("check_host rejects names and addresses that no host can have, and says why", "[launch][host_name]") {
  struct Case {
    std::string host, why;
  };
  const auto [host, why] = GENERATE(values<Case>({
      {"10.0.0.1\r", "'10.0.0.1\\r', which contains a character"},
      {"no de", "'no de', which contains a character"},
      {"n\xc3\xb6", "which contains a character"},
      {"node;reboot", "which contains a character"},
      {"10.0.0.256", "not an IPv4 address"},
      {"1.2.3.4.5", "not an IPv4 address"},
      {"node.7", "not an IPv4 address"},
      {"fd00::7::1", "not an IPv6 address"},
      {"node:29500", "not an IPv6 address"},
      {"[::1]", "not an IPv6 address"},
      {"0.0.0.0", "the wildcard address"},
      {"::", "the wildcard address"},
      {"255.255.255.255", "a multicast or broadcast address"},
      {"224.0.0.1", "a multicast or broadcast address"},
      {"ff02::1", "a multicast address"},
      {"ff02::1%1", "a multicast address"},
      {"0", "the wildcard address"},
      {"0.0", "the wildcard address"},
      {"0x0", "the wildcard address"},
      {"::ffff:0.0.0.0", "the wildcard address"},
      {"224.1", "a multicast or broadcast address"},
      {"0xe0000001", "a multicast or broadcast address"},
      {"::ffff:224.0.0.1", "a multicast or broadcast address"},
      {"::ffff:255.255.255.255", "a multicast or broadcast address"},
      {"0.1.2.3", "cannot be a machine's address"},
      {"7", "cannot be a machine's address"},
      {"240.0.0.1", "cannot be a machine's address"},
      {"255.1.2.3", "cannot be a machine's address"},
      {"::ffff:0.1.2.3", "cannot be a machine's address"},
      {"::ffff:240.0.0.1", "cannot be a machine's address"},
      {"fe80::1", "an interface of this machine must follow"},
      {"fe80::1%", "no interface"},
      {"fe80::1%nosuch0", "no interface"},
      {"fe80::1%4294967295", "no interface"},
      {"fd00::1%nosuch0", "begins with fe80:"},
      {"a..b", "1 to 63 characters"},
      {".", "1 to 253 characters"},
      {"", "1 to 253 characters"},
      {std::string(64, 'a'), "1 to 63 characters"},
      {std::string(126, 'a') + '.' + std::string(127, 'b'), "1 to 253 characters"},
  }));
  try {
    launch::check_host("MASTER_ADDR", host);
    FAIL("nothing was thrown for " << host);
  } catch (const pdp::UsageError& error) {
    CHECK_THAT(error.what(), StartsWith("MASTER_ADDR is '") && Contains(why) && Contains("must be the name or address"));
  }
}
