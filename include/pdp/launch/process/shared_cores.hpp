#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/shm/this_host.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/launch/process/cores.hpp>

namespace pdp::launch {

/// Returns the key of a counter in the job's store, which counts the ranks of a host on these cores. The key contains a hash, since a store
/// bounds the length of keys. A list of cores may be long: 0,2,4,... on machines that number the cores of two sockets alternately.
inline std::string key_of_cores(const Cores& cores, const std::string& host) {
  return text("launch/cores/", random::hash(text(describe(cores), '/', host)));
}

/// Counts this rank among the ranks of this host on these cores, and returns how many there are so far. Returns nothing if they cannot be
/// counted, since the number is needed only for a warning. Throws CommunicationError if the job has failed.
inline std::optional<std::int64_t> count_ranks_on(const Cores& cores, const comm::StoreView& store) {
  try {
    return store.add(key_of_cores(cores, comm::shm::this_host()), 1);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace pdp::launch
