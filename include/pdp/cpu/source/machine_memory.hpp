#pragma once

/// Definitions for pdp/cpu/machine_memory.hpp; see pdp/core/separate_compilation.hpp.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cgroup.hpp>
#include <pdp/cpu/machine_memory.hpp>

namespace pdp::cpu {

namespace detail {

/// Returns the limit of one group in bytes; nothing if it has none. A group of version 1 without a limit has a number near 2^63.
PDP_INLINE std::optional<double> memory_of_group(const std::filesystem::path& group) {
  Index bytes = 0;
  std::ifstream second{group / "memory.max"}, first{group / "memory.limit_in_bytes"};
  if (!(second >> bytes) && !(first >> bytes)) return std::nullopt;  // "max" is no number
  if (bytes <= 0) return std::nullopt;
  return static_cast<double>(bytes);
}

}  // namespace detail

PDP_INLINE Index physical_memory() {
  const Index pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? pages * bytes : 0;
}

PDP_INLINE Index machine_memory(Index physical, const std::filesystem::path& membership, const std::filesystem::path& root) {
  const std::optional<double> limit = detail::least_limit(membership, root, "memory", detail::memory_of_group);
  if (!limit || (physical > 0 && *limit >= static_cast<double>(physical))) return physical;
  constexpr double most = 9e18;
  return *limit < most ? static_cast<Index>(*limit) : physical;
}

}  // namespace pdp::cpu
