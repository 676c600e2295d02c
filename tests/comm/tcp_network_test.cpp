#include <string>
#include <vector>

#include <pdp/comm/tcp/network.hpp>

#include "catch.hpp"

namespace tcp = pdp::comm::tcp;

TEST_CASE("check_loopback throws if a rank listens at a loopback address and ranks are on several hosts", "[comm][tcp]") {
  const std::string here = tcp::this_network();
  CHECK(here == tcp::this_network());
  CHECK(here.find(' ') == std::string::npos);
  CHECK_NOTHROW(tcp::check_loopback({"127.0.0.1 4711 " + here, "::1 4712 " + here, "10.0.0.1 4713 " + here}));
  CHECK_NOTHROW(tcp::check_loopback({"10.0.0.1 4711 " + here, "10.0.0.2 4711 other"}));
  for (const std::string loopback : {"127.0.0.1", "::1", "127.0.1.1"}) {
    const std::vector<std::string> places{"10.0.0.1 4711 " + here, "10.0.0.2 4711 other", loopback + " 4712 other"};
    CHECK_THROWS_AS(tcp::check_loopback(places), pdp::UsageError);
    CHECK_THROWS_WITH(tcp::check_loopback(places),
                      StartsWith("rank 2 listens at " + loopback) && Contains("rank 0 is on another one") && Contains("PDP_INTERFACE"));
  }
}
