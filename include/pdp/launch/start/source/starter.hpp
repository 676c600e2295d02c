#pragma once

/// Definitions for pdp/launch/start/starter.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

PDP_INLINE const char* environment(const char* name) { return std::getenv(name); }

PDP_INLINE std::vector<std::uint16_t> ports_of_job(std::string_view job) {
  constexpr std::uint64_t ports_of_one_job = 8;
  const std::uint64_t seed = random::hash(job);
  std::vector<std::uint16_t> ports;
  for (std::uint64_t i = 0; i < ports_of_one_job; ++i)
    ports.push_back(static_cast<std::uint16_t>(first_derived_port + random::mix(seed + i) % derived_ports));
  return ports;
}

}  // namespace pdp::launch
