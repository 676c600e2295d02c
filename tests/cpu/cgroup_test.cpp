#include <pdp/cpu/cgroup.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/machine_memory.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include "catch.hpp"
#include "data/files.hpp"

namespace cgroup_test {

namespace {

/// A folder of control groups, and the file that lists those of a process.
class Groups {
 public:
  explicit Groups(const std::string& membership) { files::write(folder_ / "membership", membership); }
  void write(const std::string& file, const std::string& contents) {
    const std::filesystem::path path = folder_ / "groups" / file;
    std::filesystem::create_directories(path.parent_path());
    files::write(path, contents);
  }
  [[nodiscard]] pdp::Index memory(pdp::Index physical) const {
    return pdp::cpu::machine_memory(physical, folder_ / "membership", folder_ / "groups");
  }
  [[nodiscard]] std::optional<int> cores() const { return pdp::cpu::cgroup_cores(folder_ / "membership", folder_ / "groups"); }

 private:
  files::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("cgroup_cores takes the least limit of a group and of those around it in version 2", "[cpu]") {
  Groups groups{"0::/slurm/job_7/step_0\n"};
  CHECK(groups.cores() == std::nullopt);
  groups.write("slurm/job_7/step_0/cpu.max", "max 100000\n");
  CHECK(groups.cores() == std::nullopt);
  groups.write("slurm/cpu.max", "600000 100000\n");
  CHECK(groups.cores() == 6);
  groups.write("slurm/job_7/cpu.max", "250000 100000\n");
  CHECK(groups.cores() == 3);
  groups.write("cpu.max", "50000 100000\n");  // in a container, the folder is that of its own group
  CHECK(groups.cores() == 1);
}

TEST_CASE("cgroup_cores reads the files of version 1", "[cpu]") {
  Groups groups{"5:memory:/job\n4:cpuset,cpu,cpuacct:/job\n"};
  groups.write("memory/job/cpu.cfs_quota_us", "100000\n");
  groups.write("cpu/job/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(groups.cores() == std::nullopt);
  groups.write("cpu/job/cpu.cfs_quota_us", "400000\n");
  CHECK(groups.cores() == 4);
}

TEST_CASE("cgroup_cores ignores files that it does not understand", "[cpu]") {
  for (const char* membership : {"", "0", "0:", "a:b:c:d\n", "0::../..\n"}) {
    Groups groups{membership};
    groups.write("cpu.max", "1 0\n");
    CHECK(groups.cores() == std::nullopt);
  }
  CHECK(pdp::cpu::cgroup_cores("/does/not/exist") == std::nullopt);
  CHECK(pdp::cpu::usable_cores() > 0);
}

TEST_CASE("machine_memory takes the least limit of a group and of those around it", "[cpu]") {
  Groups second{"0::/slurm/job_7\n"}, first{"4:cpu:/other\n3:memory:/job\n"};
  CHECK(second.memory(1000) == 1000);
  second.write("slurm/job_7/memory.max", "max\n");
  CHECK(second.memory(1000) == 1000);
  second.write("slurm/memory.max", "700\n");
  CHECK(second.memory(1000) == 700);
  CHECK(second.memory(600) == 600);
  CHECK(second.memory(0) == 700);                                            // the memory of the machine is not known
  first.write("memory/job/memory.limit_in_bytes", "9223372036854771712\n");  // none
  first.write("cpu/other/memory.limit_in_bytes", "5\n");
  CHECK(first.memory(1000) == 1000);
  CHECK(first.memory(0) == 0);
  first.write("memory/job/memory.limit_in_bytes", "800\n");
  CHECK(first.memory(1000) == 800);
  for (const char* limit : {"", "-1\n", "0\n", "word\n"}) {
    second.write("slurm/memory.max", limit);
    CHECK(second.memory(1000) == 1000);
  }
  CHECK(pdp::cpu::physical_memory() > 0);
  CHECK(pdp::cpu::machine_memory() <= pdp::cpu::physical_memory());
}

}  // namespace cgroup_test
