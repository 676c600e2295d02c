#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// A function that returns the value of an environment variable, or null if it is not set: environment(), or a substitute.
using Variables = std::function<const char*(const char* name)>;
/// Returns the value of an environment variable of this process, or null if it is not set (std::getenv).
const char* environment(const char* name);

/// The launcher that has started the ranks of a job, as seen by one rank: the names of the variables that this rank reads, and functions
/// by which the ranks agree on the address and port of the job's store if MASTER_ADDR and MASTER_PORT are not set.
struct Starter {
  const char* rank;        // name of the variable with the rank of this process
  const char* size;        // of that with the number of ranks
  const char* local_rank;  // of that with the index among the ranks of this machine; null if there is none
  /// A name that distinguishes this job from others, the same on all its ranks; empty if the launcher gives none.
  std::string job{};
  /// Returns the host of the store, for a job of `size` > 1 ranks. This and master_ports return the same on all ranks. They throw
  /// UsageError if the launcher's variables do not say enough.
  std::function<std::string(const Variables& variable, int size)> master_address{};
  /// Returns the possible ports of the store. Rank 0 listens on the first that is free; the other ranks try them all.
  std::function<std::vector<std::uint16_t>(const Variables& variable, int size)> master_ports{};
  /// Returns whether the launcher says that all `size` ranks of the job are on this host.
  std::function<bool(const Variables& variable, int size)> all_here{};
  /// Whether master_address returns the name of a host, which the host itself may resolve to a loopback address.
  bool names_host = false;
};

/// The ports that ranks derive for a store from the name of their job: 12288 to 32767. Linux takes the local ports of connections from
/// 32768 on, so no connection takes one of these by chance.
inline constexpr int first_derived_port = 12288;
inline constexpr int derived_ports = 20480;

/// Derives eight ports for a job's store from the name of the job, so all its ranks find the same ports. There are several, since another
/// program may use one of them, or another job may derive the same one from its name.
std::vector<std::uint16_t> ports_of_job(std::string_view job);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/starter.hpp>
#endif
