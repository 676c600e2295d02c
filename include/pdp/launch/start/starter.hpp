#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Gives the value of an environment variable, or null: std::getenv, or a stand-in.
using Variables = std::function<const char*(const char* name)>;
const char* environment(const char* name);

/// What has started the ranks of a job, as one of them sees it: the variables that say which rank this is, and how the ranks agree on the
/// place of the job's store if MASTER_ADDR and MASTER_PORT do not say it.
struct Starter {
  const char* rank;
  const char* size;
  const char* local_rank;
  /// Tells this job from others and is the same on all its ranks; empty if the launcher says nothing of the kind.
  std::string job{};
  /// For a job of `size` > 1 ranks. Both give the same on all of them, or throw UsageError.
  std::function<std::string(const Variables& variable, int size)> master_address{};
  /// Rank 0 listens on the first of these ports that is free; the others try them all.
  std::function<std::vector<std::uint16_t>(const Variables& variable, int size)> master_ports{};
  /// Whether the launcher says that all ranks of a job of `size` are on this host.
  std::function<bool(const Variables& variable, int size)> all_here{};
  /// Whether that address is the name of a host, which the host itself may know as a loopback address.
  bool names_host = false;
};

/// The ports of stores whose port the ranks work out for themselves, from what tells their job from others: 12288 to 32767. They are below
/// those that Linux gives to the near ends of connections, from 32768 on, so no connection takes one by chance.
inline constexpr int first_derived_port = 12288;
inline constexpr int derived_ports = 20480;

/// Ports for a job, the same wherever it is worked out. There are several, since any one may be taken: by another program, or by a job for
/// which the same one was derived.
std::vector<std::uint16_t> ports_of_job(std::string_view job);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/starter.hpp>
#endif
