#pragma once

/// Definitions for pdp/cpu/cgroup.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cgroup.hpp>

namespace pdp::cpu {

namespace detail {

/// Returns the limit of one group in cores; nothing if it has none. Version 2 has "QUOTA PERIOD" in a file, and version 1 has two files.
PDP_INLINE std::optional<double> cores_of_group(const std::filesystem::path& group) {
  std::int64_t quota = 0, period = 0;
  std::ifstream both{group / "cpu.max"}, first{group / "cpu.cfs_quota_us"}, second{group / "cpu.cfs_period_us"};
  if (!(both >> quota >> period) && !(first >> quota && second >> period)) return std::nullopt;  // "max" is no number
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

PDP_INLINE std::optional<double> least_limit(const std::filesystem::path& membership, const std::filesystem::path& root,
                                             const std::string& controller,
                                             std::optional<double> (*limit_of)(const std::filesystem::path&)) {
  std::optional<double> least;
  std::ifstream lines{membership};
  for (std::string line; std::getline(lines, line);) {  // "0::/GROUP" in version 2, "4:cpu,cpuacct:/GROUP" in version 1
    const auto name = line.find(':'), path = line.find(':', name + 1);
    if (name == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(name + 1, path - name - 1) + ',';
    if (controllers != ",," && controllers.find(',' + controller + ',') == std::string::npos) continue;
    const std::filesystem::path top = controllers == ",," ? root : root / controller;
    std::filesystem::path group = std::filesystem::path{line.substr(path + 1)}.relative_path();
    for (bool more = true; more; group = group.parent_path()) {  // a group also has the limits of those around it
      if (const std::optional<double> limit = limit_of(top / group)) least = std::min(least.value_or(*limit), *limit);
      more = !group.empty();
    }
  }
  return least;
}

}  // namespace detail

PDP_INLINE std::optional<int> cgroup_cores(const std::filesystem::path& membership, const std::filesystem::path& root) {
  const std::optional<double> least = detail::least_limit(membership, root, "cpu", detail::cores_of_group);
  if (!least || *least > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(std::ceil(*least));
}

}  // namespace pdp::cpu
