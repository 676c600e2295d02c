#pragma once

/// What pdp/launch/processes.hpp declares, compiled once for a program: one source of it includes this file. CMake's target pdp::launch
/// adds that source.

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <pdp/launch/in_process_store.hpp>
#include <pdp/launch/local.hpp>
#include <pdp/launch/processes.hpp>
#include <pdp/launch/tcp_store.hpp>
#include <pdp/launch/tcp_store_server.hpp>

namespace pdp::launch {

Start start_from_environment(const Options& options, std::span<const std::string_view> names) {
  return Start::from(options, names, environment);
}

int run_processes(const Options& options) {
  static_cast<void>(Place::timeout_from(environment));  // a wrong one is said once, here, and not by every rank
  const int here = *options.local_processes();
  LocalRanks ranks{.first = options.node_rank * here,
                   .count = here,
                   .size = options.nodes * here,
                   .address = options.address,
                   .port = static_cast<std::uint16_t>(options.port)};
  std::optional<TcpStoreServer> store;
  if (options.nodes == 1) {
    ranks.address = "127.0.0.1";
    ranks.port = store.emplace().port();
  } else if (options.node_rank == 0) {
    store.emplace(options.address, ranks.port);
  }
  return Launcher{ranks}.run();
}

struct Rendezvous::Ends {
  InProcessStore alone;
  std::optional<TcpStoreServer> server;
  std::optional<TcpStore> store;
};

Rendezvous::Rendezvous(const Place& place, comm::TimePoint deadline) : ends_{std::make_unique<Ends>()} {
  if (place.size == 1) return;
  if (place.hosts_store) ends_->server.emplace(place.master_address, place.master_port);
  ends_->store.emplace(place.master_address, place.master_port, deadline);
}
Rendezvous::~Rendezvous() = default;

comm::StoreView Rendezvous::store() {
  if (ends_->store) return *ends_->store;
  return ends_->alone;
}

}  // namespace pdp::launch
