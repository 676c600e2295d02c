#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::cpu {

namespace detail {

/// Returns the least limit of the control groups of a process and of those around them; nothing if there is none. `limit_of` returns the
/// limit of the group in a folder. `membership`, `root`: see cgroup_cores().
[[nodiscard]] std::optional<double> least_limit(const std::filesystem::path& membership, const std::filesystem::path& root,
                                                const std::string& controller,
                                                std::optional<double> (*limit_of)(const std::filesystem::path& group));

}  // namespace detail

/// Returns the cores' worth of time that the control groups of a process allow it, rounded up; nothing if they set no limit. Containers
/// (docker run --cpus 2) and Slurm may set one. `membership`: the file that lists the groups. `root`: the folder of all groups, of version
/// 2 or 1 (https://docs.kernel.org/admin-guide/cgroup-v2.html, cpu.max).
[[nodiscard]] std::optional<int> cgroup_cores(const std::filesystem::path& membership = "/proc/self/cgroup",
                                              const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/cgroup.hpp>
#endif
