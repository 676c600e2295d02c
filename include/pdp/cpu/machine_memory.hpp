#pragma once

#include <filesystem>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::cpu {

/// Returns the bytes of memory of this machine; 0 if they are not known.
[[nodiscard]] Index physical_memory();

/// Returns the bytes of memory that a process may use: `physical`, or the least limit of its control groups if that is lower. Containers
/// (docker run --memory 2g) and Slurm may set one. `membership`, `root`: as in cgroup_cores() (memory.max of version 2,
/// memory.limit_in_bytes of version 1).
[[nodiscard]] Index machine_memory(Index physical = physical_memory(), const std::filesystem::path& membership = "/proc/self/cgroup",
                                   const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/machine_memory.hpp>
#endif
