#pragma once

/// Definitions for pdp/launch/start/processes.hpp, included by the headers of the backends or by one source; see
/// pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/access/access.hpp>
#include <pdp/launch/access/voucher.hpp>
#include <pdp/launch/net/reach.hpp>
#include <pdp/launch/process/cores.hpp>
#include <pdp/launch/process/local.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/process/shared_cores.hpp>
#include <pdp/launch/start/processes.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>
#include <pdp/launch/start/tell.hpp>
#include <pdp/launch/store/file_store.hpp>
#include <pdp/launch/store/in_process_store.hpp>
#include <pdp/launch/store/store_protocol.hpp>
#include <pdp/launch/store/store_search.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

namespace pdp::launch {

PDP_INLINE Start start_from_environment(const Options& options, const Connections& known) {
  return Start::from(options, known, environment);
}

namespace detail {

/// Returns the variables of pdp's launcher that also apply to the ranks that it starts. Hides the others: for example, a rank or a Slurm
/// step in the environment of the launcher is that of the launcher itself.
inline Variables variables_of_launcher(const Variables& variable) {
  return [variable](const char* name) -> const char* {
    const std::string_view words{name};
    for (const char* of_the_job : {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "GROUP_WORLD_SIZE"})
      if (words == of_the_job) return variable(name);
    return words.starts_with("PDP_") ? variable(name) : nullptr;
  };
}

/// Returns the place of the first rank that this launcher starts, in a job on several machines. On machine 0 the launcher itself hosts the
/// store. Throws UsageError if the options or PDP_RENDEZVOUS are invalid.
inline JobPlace place_of_launcher(const Options& options) {
  options.check();
  const RendezvousUrl meeting = RendezvousUrl::from(options.rendezvous, environment);
  JobPlace place{.rank = options.node_rank * *options.local_processes(), .size = *options.processes()};
  place.folder = meeting.folder;
  if (!place.folder.empty()) return place;
  const bool at_place = meeting.kind == RendezvousUrl::Kind::tcp;
  place.master_address = at_place ? meeting.host : options.address;
  place.master_port = at_place ? meeting.port : static_cast<std::uint16_t>(options.port);
  place.hosts_store = options.node_rank == 0;
  return place;
}

/// The end of an attempt: its exit code, and whether another one may follow.
struct Attempt {
  int code;
  bool may_start_again;
};

/// Starts the ranks of one attempt and waits for their end. `restart`: the number of attempts before.
inline Attempt run_attempt(const Options& options, int restart) {
  // Errors in these variables are reported once, here, and not by every rank.
  const comm::TimePoint deadline = comm::Clock::now() + JobPlace::timeout_from(environment);
  static_cast<void>(JobPlace::heartbeat_from(environment));
  static_cast<void>(JobPlace::deadline_from(environment));
  const RendezvousUrl meeting = RendezvousUrl::from(options.rendezvous, environment);
  const bool in_folder = meeting.kind == RendezvousUrl::Kind::file, at_place = meeting.kind == RendezvousUrl::Kind::tcp;
  const int here = *options.local_processes();
  LocalRanks ranks{.first = options.node_rank * here,
                   .count = here,
                   .size = options.nodes * here,
                   .address = at_place ? meeting.host : options.address,
                   .port = at_place ? meeting.port : static_cast<std::uint16_t>(options.port),
                   .stops_on_request = options.stops_on_request};
  if (in_folder) ranks.address.clear();
  Access access = Access::from(variables_of_launcher(environment), ranks.size);
  if (restart > 0) access.job.attempt += text('+', restart);
  std::optional<TcpStoreServer> store;
  if (options.nodes == 1) {
    if (!access.secret) access.secret = ranks.secret.emplace(draw_secret_words());
    if (!in_folder && !at_place) {
      ranks.address = "127.0.0.1";
      ranks.port = 0;
    }
  } else if (!in_folder) {
    std::string ignored;
    for (const Address& address : resolve(ranks.address, ranks.port, ignored)) static_cast<void>(choose_grounds(access, address));
  }
  if (!in_folder && options.node_rank == 0) {
    // Listen at the address at which the ranks look for the store.
    const JobPlace place{.master_address = ranks.address, .master_port = ranks.port, .hosts_store = true};
    const Reach reach = Reach::from(environment, place, deadline, /*together*/ false, access.others_may_join());
    ranks.port = store.emplace(reach.store, ranks.port, ranks.size, access, deadline).port();
  }
  ranks.job = access.job;
  // Other ranks, also those of other launchers, may wait for a rank that has ended before it reached the store.
  const auto on_end = [&, address = ranks.address, port = ranks.port, size = ranks.size](int rank, const std::string& why, bool missed) {
    const comm::Failure failure{comm::Failure::Kind::lost, rank, text("rank ", rank, " has failed: ", why)};
    if (!store) {
      // If the store is a folder, the ranks of this machine may wait for that rank, too.
      if (options.nodes > 1 || in_folder)
        tell_job(failure, {.rank = rank, .size = size, .master_address = address, .master_port = port, .folder = meeting.folder}, access);
    } else if (missed || !store->has_come(rank)) {
      store->fail(failure);
    }
  };
  Launcher launcher{std::move(ranks), on_end};
  const int code = launcher.run();
  // Ranks of other machines may not have reached the store yet.
  if (store) store->wait_until_told(here, comm::Clock::now() + time_to_tell);
  return {code, launcher.may_start_again()};
}

}  // namespace detail

PDP_INLINE int run_processes(const Options& options) {
  comm::raise_descriptor_limit();  // the ranks inherit it
  for (int restart = 0;; ++restart) {
    const auto [code, may_start_again] = detail::run_attempt(options, restart);
    if (!may_start_again || restart == options.restarts) return code;
    Report::print({.message = text("the ranks start again (restart ", restart + 1, " of ", options.restarts, ")")}, -1);
  }
}

struct Rendezvous::Ends {
  InProcessStore alone;
  std::optional<TcpStoreServer> server;
  std::optional<TcpStore> store;
  std::optional<FileStore> folder;
  std::string address{};  // at which others reach this process; empty: the local address of its connection to the store
  int rank = 0;
  bool failed = false;

  /// Connects to the store, and before that hosts it if place.hosts_store says so.
  void open(const JobPlace& place, const Access& access, comm::TimePoint deadline) {
    const Reach reach = Reach::from(environment, place, deadline, access.together, access.others_may_join());
    address = reach.own;
    if (!place.folder.empty()) {
      folder.emplace(detail::folder_of(place.folder, access.job),
                     comm::Membership{.secret = access.secret.value_or(comm::Secret{}), .job = access.job}, deadline);
      return;
    }
    const std::vector<std::uint16_t> ports = detail::ports_of(place);
    std::uint16_t port = ports.front();
    if (place.hosts_store)
      port = detail::host_store(server, reach.store, ports, place.size, access, deadline);
    else if (ports.size() > 1)
      port = StoreSearch{reach.store, ports, place.rank, place.size, access}.port(deadline);
    store.emplace(reach.store, port, deadline, place.rank, place.size, access);
  }
};

PDP_INLINE Rendezvous::Rendezvous(const JobPlace& place, comm::TimePoint deadline) : ends_{std::make_unique<Ends>()} {
  ends_->rank = place.rank;
  if (place.size == 1) return;
  comm::raise_descriptor_limit();
  try {
    ends_->open(place, Access::from(environment, place.size), deadline);
  } catch (const Timeout&) {  // without a store, no rank can be told
    throw;
  } catch (...) {
    const comm::Failure failure = Problem::failure_at_start(place.rank);
    if (ends_->server) {
      ends_->server->fail(failure);
      ends_->server->wait_until_told(1, comm::Clock::now() + time_to_tell);
    } else {
      detail::tell_rank_failure(failure, place);
    }
    throw;
  }
}
PDP_INLINE Rendezvous::~Rendezvous() {
  if (!ends_) return;
  // If this rank gives up, the others may still have to read the reason.
  const comm::TimePoint until = comm::Clock::now() + time_to_tell;
  ends_->store.reset();
  if (ends_->server) ends_->failed ? ends_->server->wait_until_told(1, until) : ends_->server->wait_until_alone(until);
}

PDP_INLINE void Rendezvous::leave(comm::TimePoint deadline) {
  ends_->store.reset();
  if (ends_->server) ends_->server->wait_until_alone(deadline);
}

PDP_INLINE void Rendezvous::agree_on(std::string_view communicator) {
  if (communicator.empty()) return;
  static constexpr const char* key = "launch/communicator";
  const comm::StoreView view = store();
  try {
    view.set(key, communicator);
  } catch (const ConfigError&) {
    const std::optional<std::string> other = view.get(key);
    if (!other || *other == communicator) throw;
    throw ConfigError{text("rank ", ends_->rank, " uses the communicator ", communicator, ", but other ranks of this job use ",
                           in_quotes(*other), "; start all ranks with the same program and the same --comm")};
  }
}

PDP_INLINE void Rendezvous::warn_of_shared_cores() {
  const std::vector<Cores> places = openmp_places();
  const std::optional<Cores> own = narrowed_by_openmp(places);
  if (!own) return;
  if (count_ranks_on(*own, store()) != CPU_COUNT(&*own) + 1) return;
  const std::string line =
      text("rank ", ends_->rank, ": OpenMP has bound this rank and others of this machine to core ", describe(*own), ", although ",
           describe(all_of(places)),
           " are available; they share it and run slower. Unset OMP_PROC_BIND (and GOMP_CPU_AFFINITY or KMP_AFFINITY), or "
           "let the launcher give each rank its own cores (srun --cpu-bind=cores, mpirun --bind-to core, --ranks of this program)\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

PDP_INLINE void Rendezvous::fail() noexcept {
  try {
    const comm::Failure failure = Problem::failure_at_start(ends_->rank);
    ends_->failed = true;
    if (ends_->server)
      ends_->server->fail(failure);
    else
      store().fail(failure);
  } catch (...) {  // the others find out by themselves
  }
}

PDP_INLINE void tell_others(const Options& options) noexcept {
  try {
    if (options.nodes > 1 && !JobPlace::given(environment)) {
      const JobPlace place = detail::place_of_launcher(options);
      const comm::Failure failure =
          Problem::failure_at_start(place.rank, text("the launcher of machine ", options.node_rank, " (rank ", place.rank, ')'));
      detail::tell_job(failure, place, Access::from(detail::variables_of_launcher(detail::environment_to_tell), place.size));
    } else {
      const JobPlace place = JobPlace::from(detail::environment_to_tell, options.rendezvous);
      if (place.size > 1) detail::tell_rank_failure(Problem::failure_at_start(place.rank), place);
    }
  } catch (...) {  // the rendezvous of the others is unknown
  }
}

PDP_INLINE comm::StoreView Rendezvous::store() {
  const auto reached = [this](comm::StoreView view) { return ends_->address.empty() ? view : view.reached_at(ends_->address); };
  if (ends_->store) return reached(*ends_->store);
  if (ends_->folder) return reached(*ends_->folder);
  return ends_->alone;
}

}  // namespace pdp::launch
