#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// A function that returns the value of an environment variable, or null: environment(), which is std::getenv, or a substitute.
using Variables = std::function<const char*(const char* name)>;
const char* environment(const char* name);

/// The program that has started the ranks of a job, as seen by one of them: the variables that give its rank, and how the ranks agree on
/// the place of the job's store if MASTER_ADDR and MASTER_PORT do not give it.
struct Starter {
  const char* rank;
  const char* size;
  const char* local_rank;
  /// Distinguishes this job from others and is the same on all its ranks; empty if the launcher has no such name.
  std::string job{};
  /// For a job of `size` > 1 ranks. This and master_ports return the same on all of them, or throw UsageError.
  std::function<std::string(const Variables& variable, int size)> master_address{};
  /// Rank 0 listens on the first of these ports that is free; the others try them all.
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

/// Returns ports for a job, the same on all its ranks. There are several, since any of them may be taken: by another program, or by a job
/// from whose name the same one was derived.
std::vector<std::uint16_t> ports_of_job(std::string_view job);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/starter.hpp>
#endif
