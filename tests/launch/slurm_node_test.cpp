#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <pdp/comm/clock.hpp>
#include <pdp/launch/net/slurm_node.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

/// A fake scontrol, which comes first in PATH.
class Scontrol {
 public:
  explicit Scontrol(const std::string& script) : path_{std::getenv("PATH")} {
    std::filesystem::create_directories(folder_);
    std::ofstream{folder_ / "scontrol"} << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ / "scontrol", std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.string() + ':' + path_).c_str(), 1);
  }
  Scontrol(Scontrol&&) = delete;
  ~Scontrol() {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / pdp::text("pdp_scontrol_", ::getpid());
  std::string path_;
};

std::optional<std::string> node_address(std::chrono::milliseconds within) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  return launch::slurm_node_address(nothing, "n0", pdp::comm::Clock::now() + within);
}

}  // namespace

TEST_CASE("address_in_description finds the address of a node in the output of scontrol", "[launch][slurm]") {
  const std::string words =
      "NodeName=n0 Arch=x86_64 CPUTot=8 NodeAddr=10.201.0.1 NodeHostName=vm Port=17001 Version=22.05.8 OS=Linux RealMemory=1 \n";
  CHECK(launch::address_in_description(words) == "10.201.0.1");
  CHECK(launch::address_in_description("NodeName=n0 NodeAddr=fd00::7\n") == "fd00::7");
  CHECK(launch::address_in_description("NodeName=n0 NodeAddr=(null) NodeHostName=n0") == std::nullopt);
  CHECK(launch::address_in_description("Node n9 not found\n") == std::nullopt);
  CHECK(launch::address_in_description("") == std::nullopt);
}

TEST_CASE("address_in_aliases finds the address of a cloud node in SLURM_NODE_ALIASES", "[launch][slurm]") {
  const char* aliases = "ec0:10.0.0.7:ip-10-0-0-7,ec1:[fd00::8]:ip-8,ec10:10.0.0.9:ip-9";
  CHECK(launch::address_in_aliases(aliases, "ec0") == "10.0.0.7");
  CHECK(launch::address_in_aliases(aliases, "ec1") == "fd00::8");
  CHECK(launch::address_in_aliases(aliases, "ec10") == "10.0.0.9");
  for (const char* none : {"ec", "ec2", "0", ""}) CHECK(launch::address_in_aliases(aliases, none) == std::nullopt);
  for (const char* damaged : {"", "(null)", "ec0", "ec0:", "ec0::x", ",,"})
    CHECK(launch::address_in_aliases(damaged, "ec0") == std::nullopt);
}

TEST_CASE("slurm_node_address waits for scontrol until the deadline", "[launch][slurm]") {
  const auto begin = std::chrono::steady_clock::now();
  SECTION("scontrol answers late") {
    const Scontrol scontrol{"sleep 0.6; echo \"NodeName=$4 NodeAddr=10.0.0.7\""};
    CHECK(node_address(std::chrono::seconds{60}) == "10.0.0.7");
  }
  SECTION("scontrol stops in the middle of its output") {
    const Scontrol scontrol{"printf 'NodeName=n0 NodeAddr=10.0.0.'; exec sleep 60"};
    CHECK(node_address(std::chrono::seconds{1}) == std::nullopt);
  }
  SECTION("scontrol does not answer") {
    const Scontrol scontrol{"exec sleep 60"};
    CHECK(node_address(std::chrono::milliseconds{50}) == std::nullopt);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{8});
  }
}
