#include <optional>
#include <string>

#include <pdp/launch/slurm_node.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

TEST_CASE("The address of a node is found in what scontrol prints", "[launch][slurm]") {
  const std::string words =
      "NodeName=n0 Arch=x86_64 CPUTot=8 NodeAddr=10.201.0.1 NodeHostName=vm Port=17001 Version=22.05.8 OS=Linux RealMemory=1 \n";
  CHECK(launch::address_in_description(words) == "10.201.0.1");
  CHECK(launch::address_in_description("NodeName=n0 NodeAddr=fd00::7\n") == "fd00::7");
  CHECK(launch::address_in_description("NodeName=n0 NodeAddr=(null) NodeHostName=n0") == std::nullopt);
  CHECK(launch::address_in_description("Node n9 not found\n") == std::nullopt);
  CHECK(launch::address_in_description("") == std::nullopt);
}

TEST_CASE("The address of a node of a cloud is found in SLURM_NODE_ALIASES", "[launch][slurm]") {
  const char* aliases = "ec0:10.0.0.7:ip-10-0-0-7,ec1:[fd00::8]:ip-8,ec10:10.0.0.9:ip-9";
  CHECK(launch::address_in_aliases(aliases, "ec0") == "10.0.0.7");
  CHECK(launch::address_in_aliases(aliases, "ec1") == "fd00::8");
  CHECK(launch::address_in_aliases(aliases, "ec10") == "10.0.0.9");
  for (const char* none : {"ec", "ec2", "0", ""}) CHECK(launch::address_in_aliases(aliases, none) == std::nullopt);
  for (const char* damaged : {"", "(null)", "ec0", "ec0:", "ec0::x", ",,"})
    CHECK(launch::address_in_aliases(damaged, "ec0") == std::nullopt);
}
