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

/// The rank of this process in its job, and how it finds the other ranks.
struct JobPlace {
  int rank = 0;
  int size = 1;
  std::optional<int> local_rank{};                      // index among the ranks of this machine, if known
  std::string master_address{};                         // name or address of the host of the job's store; empty if there is no host
  std::uint16_t master_port = 0;                        // port of the store at that host
  std::vector<std::uint16_t> more_ports{};              // further ports of the store, tried in order if master_port is taken
  bool master_by_name = false;                          // whether master_address is the launcher's name of the host (Starter::names_host)
  std::string folder{};                                 // path of the job's store, if it is a folder and not a server
  bool hosts_store = false;                             // whether this process hosts the store: rank 0, unless the launcher does
  comm::Duration timeout = std::chrono::seconds{60};    // for the whole start of the job
  comm::Duration heartbeat = std::chrono::seconds{10};  // longest time without a sign of life from a rank; zero: unlimited
  std::optional<comm::Duration> deadline{};             // of calls; nothing: the communicator's default

  /// Returns whether a launcher has started this process as a rank. A process that mpirun or srun has started alone does not count: it may
  /// start ranks of its own.
  static bool given(const Variables& variable);
  /// Returns PDP_TIMEOUT: the seconds that the whole start of a job may take, 60 unless set. Like the next two functions, throws UsageError
  /// if the variable is not a number in its range.
  static comm::Duration timeout_from(const Variables& variable);
  /// Returns PDP_HEARTBEAT: the seconds for which a rank may give no sign of life before the job fails, 10 unless set. 0: unlimited.
  static comm::Duration heartbeat_from(const Variables& variable);
  /// Returns PDP_DEADLINE: the seconds for which a call may wait for other ranks. Nothing if it is not set: communicators then keep their
  /// own deadline, 5 minutes.
  static std::optional<comm::Duration> deadline_from(const Variables& variable);
  /// Reads the place of this process from the environment.
  ///
  /// Rank and size come from RANK and WORLD_SIZE, as torchrun and others set them, else from the variables of another launcher (see
  /// launcher_variables.hpp), else from those of a Slurm step (see slurm.hpp). Without any of them, the process is the only rank.
  /// LOCAL_RANK, MASTER_ADDR and MASTER_PORT take precedence over the launcher's own variables, with one exception: if torchrun itself
  /// listens on MASTER_PORT, the ports of the store are derived from MASTER_PORT and TORCHELASTIC_RUN_ID.
  ///
  /// `rendezvous` is a URL from the command line; if it is empty, PDP_RENDEZVOUS is used (see rendezvous_url.hpp). A host or folder in the
  /// URL takes precedence over MASTER_ADDR and MASTER_PORT. If PDP_STORE is launcher, the launcher hosts the store at that address and
  /// port. `has_store`: whether the ranks need a store to find each other. If not, its address and port need not be known.
  ///
  /// Throws UsageError if variables contradict each other or are incomplete, and if a launcher has started this process as one of several
  /// ranks but does not say how many there are.
  static JobPlace from(const Variables& variable = environment, std::string_view rendezvous = {}, bool has_store = true);
};

using Place = JobPlace;

}  // namespace pdp::launch
#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/environment.hpp>
#endif
