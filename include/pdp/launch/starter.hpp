#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

namespace pdp::launch {

/// Gives the value of an environment variable, or null: std::getenv, or a stand-in.
using Variables = std::function<const char*(const char* name)>;
inline const char* environment(const char* name) { return std::getenv(name); }

/// What has started the ranks of a job, as one of them sees it: the variables that say who it is, and how it finds the store where
/// MASTER_ADDR and MASTER_PORT do not say so.
struct Starter {
  const char* rank;
  const char* size;
  const char* local_rank;
  // For a job of `size` > 1 ranks. They give the same on all of them, or throw UsageError.
  std::string (*master_address)(const Variables& variable, int size);
  std::uint16_t (*master_port)(const Variables& variable, int size);
  bool names_host = false;  // that address is the name of a host, which the host itself may know as a loopback address
};

/// The ports of stores whose port the ranks work out for themselves, from what tells their job from others: 12288 to 32767. They are below
/// those that Linux gives to the near ends of connections, from 32768 on, so no connection takes one by chance.
inline constexpr int first_derived_port = 12288;
inline constexpr int derived_ports = 20480;

}  // namespace pdp::launch
