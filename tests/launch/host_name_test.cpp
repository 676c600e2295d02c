#include <string>

#include <pdp/launch/host_name.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

TEST_CASE("Names and addresses of hosts are accepted", "[launch][host_name]") {
  for (const char* host :
       {"node07", "a", "node-7.cluster.example.", "under_score", "10.0.0.1", "127.1", "::1", "fe80::1%eth0", "fd00::7", "7node", "1.node"})
    CHECK_NOTHROW(launch::check_host("MASTER_ADDR", host));
  CHECK(launch::is_address("10.0.0.1"));
  CHECK(launch::is_address("fe80::1%eth0"));
  CHECK_FALSE(launch::is_address("node07"));
}

TEST_CASE("An address that no host can have is refused with the reason", "[launch][host_name]") {
  struct Case {
    std::string host, why;
  };
  const auto [host, why] = GENERATE(values<Case>({
      {"10.0.0.1\r", "'10.0.0.1\\r', which has a letter"},
      {"no de", "'no de', which has a letter"},
      {"n\xc3\xb6", "which has a letter"},
      {"node;reboot", "which has a letter"},
      {"10.0.0.256", "no address of IPv4"},
      {"1.2.3.4.5", "no address of IPv4"},
      {"node.7", "no address of IPv4"},
      {"fd00::7::1", "no address of IPv6"},
      {"node:29500", "no address of IPv6"},
      {"[::1]", "no address of IPv6"},
      {"0.0.0.0", "any address"},
      {"::", "any address"},
      {"255.255.255.255", "a group of machines"},
      {"224.0.0.1", "a group of machines"},
      {"ff02::1", "a group of machines"},
      {"a..b", "1 to 63 letters"},
      {".", "1 to 253 letters"},
      {"", "1 to 253 letters"},
      {std::string(64, 'a'), "1 to 63 letters"},
      {std::string(126, 'a') + '.' + std::string(127, 'b'), "1 to 253 letters"},
  }));
  try {
    launch::check_host("MASTER_ADDR", host);
    FAIL("nothing was thrown for " << host);
  } catch (const pdp::UsageError& error) {
    CHECK_THAT(error.what(), StartsWith("MASTER_ADDR is '") && Contains(why) && Contains("must be the name or address"));
  }
}
