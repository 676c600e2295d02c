#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// Who this process is, and where it finds the others.
struct JobPlace {
  int rank = 0;
  int size = 1;
  std::optional<int> local_rank{};  // among the ranks on this machine, where somebody says
  std::string master_address{};     // where the job's store is; empty in a world of one
  std::uint16_t master_port = 0;
  std::vector<std::uint16_t> more_ports{};              // where the store is if that port is taken
  bool master_by_name = false;                          // its address is a name that the starter has for its host
  std::string folder{};                                 // what the job's store is, instead of a place in the network
  bool hosts_store = false;                             // whether this rank hosts it: rank 0, unless the launcher does
  comm::Duration timeout = std::chrono::seconds{60};    // for the whole start
  comm::Duration heartbeat = std::chrono::seconds{10};  // how long a rank may give no sign of life; zero: for ever
  std::optional<comm::Duration> deadline{};             // of calls, if the environment sets one

  /// Whether another process has started this one as a rank.
  static bool given(const Variables& variable);
  // PDP_TIMEOUT, PDP_HEARTBEAT and PDP_DEADLINE.
  static comm::Duration timeout_from(const Variables& variable);
  static comm::Duration heartbeat_from(const Variables& variable);
  static std::optional<comm::Duration> deadline_from(const Variables& variable);
  /// As the environment says. `rendezvous`: where the ranks meet, a URL; empty: as PDP_RENDEZVOUS says.
  static JobPlace from(const Variables& variable = environment, std::string_view rendezvous = {}, bool has_store = true);
};

using Place = JobPlace;

}  // namespace pdp::launch
#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/environment.hpp>
#endif
