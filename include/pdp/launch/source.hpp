#pragma once

/// The definitions of what pdp/launch/processes.hpp declares, included by the backends' headers or by one source; see
/// pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/access.hpp>
#include <pdp/launch/file_store.hpp>
#include <pdp/launch/in_process_store.hpp>
#include <pdp/launch/local.hpp>
#include <pdp/launch/processes.hpp>
#include <pdp/launch/reach.hpp>
#include <pdp/launch/rendezvous_url.hpp>
#include <pdp/launch/store_search.hpp>
#include <pdp/launch/tcp_store.hpp>
#include <pdp/launch/tcp_store_server.hpp>
#include <pdp/launch/voucher.hpp>

namespace pdp::launch {

PDP_INLINE Start start_from_environment(const Options& options, const Connections& known) {
  return Start::from(options, known, environment);
}

PDP_INLINE int run_processes(const Options& options) {
  // What is wrong in these is said once, here, and not by every rank.
  static_cast<void>(Place::timeout_from(environment));
  static_cast<void>(Place::heartbeat_from(environment));
  const RendezvousUrl meeting = RendezvousUrl::from(options.rendezvous, environment);
  const bool in_folder = meeting.kind == RendezvousUrl::Kind::file, at_place = meeting.kind == RendezvousUrl::Kind::tcp;
  const int here = *options.local_processes();
  LocalRanks ranks{.first = options.node_rank * here,
                   .count = here,
                   .size = options.nodes * here,
                   .address = at_place ? meeting.host : options.address,
                   .port = at_place ? meeting.port : static_cast<std::uint16_t>(options.port)};
  if (in_folder) ranks.address.clear();
  // What the starter of the launcher says of places and steps holds for the launcher, and not for its ranks.
  Access access = Access::from(
      [](const char* name) {
        const std::string_view words{name};
        for (const char* of_the_job : {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "GROUP_WORLD_SIZE"})
          if (words == of_the_job) return environment(name);
        return words.starts_with("PDP_") ? environment(name) : nullptr;
      },
      ranks.size);
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
  if (!in_folder && options.node_rank == 0) ranks.port = store.emplace(ranks.address, ranks.port, ranks.size, access).port();
  ranks.job = access.job;
  return Launcher{std::move(ranks)}.run();
}

struct Rendezvous::Ends {
  InProcessStore alone;
  std::optional<TcpStoreServer> server;
  std::optional<TcpStore> store;
  std::optional<FileStore> folder;
  std::string address{};  // at which others reach this process; empty: that of its connection to the store

  /// On the first of the ports that is free, and returns it. Throws ConfigError as TcpStoreServer does.
  std::uint16_t host_store(const std::string& host, std::span<const std::uint16_t> ports, int size, const Access& access) {
    for (const std::uint16_t port : ports.first(ports.size() - 1)) {
      try {
        server.emplace(host, port, size, access);
        return port;
      } catch (const PortTaken&) {
      }
    }
    server.emplace(host, ports.back(), size, access);
    return ports.back();
  }
};

PDP_INLINE Rendezvous::Rendezvous(const Place& place, comm::TimePoint deadline) : ends_{std::make_unique<Ends>()} {
  if (place.size == 1) return;
  const Access access = Access::from(environment, place.size);
  const Reach reach = Reach::from(environment, place, access.together, access.others_may_join());
  ends_->address = reach.own;
  if (!place.folder.empty()) {
    // Attempts must not find what an earlier one has left.
    std::filesystem::path folder = place.folder;
    if (const std::string name = access.job.name + '/' + access.job.attempt; name != "/") folder /= "job-" + FileStore::file_name(name);
    ends_->folder.emplace(std::move(folder), comm::Membership{.secret = access.secret.value_or(comm::Secret{}), .job = access.job});
    return;
  }
  std::vector<std::uint16_t> ports{place.master_port};
  ports.insert(ports.end(), place.more_ports.begin(), place.more_ports.end());
  std::uint16_t port = ports.front();
  if (place.hosts_store)
    port = ends_->host_store(reach.store, ports, place.size, access);
  else if (ports.size() > 1)
    port = StoreSearch{reach.store, ports, place.rank, place.size, access}.port(deadline);
  ends_->store.emplace(reach.store, port, deadline, place.rank, place.size, access);
}
PDP_INLINE Rendezvous::~Rendezvous() {
  // Where this rank gives up, the others may still have to read why.
  if (ends_) leave(comm::Clock::now() + std::chrono::milliseconds{500});
}

PDP_INLINE void Rendezvous::leave(comm::TimePoint deadline) {
  ends_->store.reset();
  if (ends_->server) ends_->server->wait_until_alone(deadline);
}

PDP_INLINE comm::StoreView Rendezvous::store() {
  const auto reached = [this](comm::StoreView view) { return ends_->address.empty() ? view : view.reached_at(ends_->address); };
  if (ends_->store) return reached(*ends_->store);
  if (ends_->folder) return reached(*ends_->folder);
  return ends_->alone;
}

}  // namespace pdp::launch
