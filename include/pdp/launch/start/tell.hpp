#pragma once

/// The location of a job's store, and functions by which a process tells the other ranks through the store why the job cannot start.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/join/membership.hpp>
#include <pdp/launch/access/access.hpp>
#include <pdp/launch/net/reach.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/store/file_store.hpp>
#include <pdp/launch/store/store_protocol.hpp>
#include <pdp/launch/store/store_search.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

namespace pdp::launch::detail {

/// Returns the folder of the store for this attempt at the job. `meeting`: the folder of the rendezvous URL. A job or attempt with a name
/// has a folder of its own in it, so that it finds no files of an earlier one.
inline std::filesystem::path folder_of(const std::string& meeting, const comm::Job& job) {
  std::filesystem::path folder = meeting;
  if (const std::string name = job.name + '/' + job.attempt; name != "/") folder /= "job-" + FileStore::file_name(name);
  return folder;
}

/// Hosts the job's store on the first of the ports that is free, and returns that port. Throws ConfigError as TcpStoreServer does.
inline std::uint16_t host_store(std::optional<TcpStoreServer>& server, const std::string& host, std::span<const std::uint16_t> ports,
                                int size, const Access& access, comm::TimePoint deadline) {
  for (const std::uint16_t port : ports.first(ports.size() - 1)) {
    try {
      server.emplace(host, port, size, access, deadline);
      return port;
    } catch (const PortTaken&) {
    }
  }
  server.emplace(host, ports.back(), size, access, deadline);
  return ports.back();
}

/// Returns the possible ports of the job's store, in the order in which its host tries them.
inline std::vector<std::uint16_t> ports_of(const JobPlace& place) {
  std::vector<std::uint16_t> ports{place.master_port};
  ports.insert(ports.end(), place.more_ports.begin(), place.more_ports.end());
  return ports;
}

/// Returns the value of an environment variable, for a process that reports an error. Returns null for variables that only a joining rank
/// needs, and for invalid values of PDP_STORE and PDP_INSECURE: a wrong value may be the very error that is to be reported.
inline const char* environment_to_tell(const char* name) {
  const std::string_view word{name};
  for (const char* not_needed : {"PDP_TIMEOUT", "PDP_HEARTBEAT", "PDP_DEADLINE", "PDP_INTERFACE", "LOCAL_RANK"})
    if (word == not_needed) return nullptr;
  const char* value = environment(name);
  if (value == nullptr || (word == "PDP_STORE" && std::string_view{value} != "launcher") ||
      (word == "PDP_INSECURE" && std::string_view{value} != "1"))
    return nullptr;
  return value;
}

/// Tells the other ranks of a job why it cannot start, through its store. Hosts the store meanwhile if `place` says so. Takes at most twice
/// time_to_tell, plus the time that the system takes to resolve a name.
inline void tell_job(const comm::Failure& failure, const JobPlace& place, const Access& access) noexcept {
  try {
    if (!place.folder.empty()) return FileStore{folder_of(place.folder, access.job), {}, {}, time_to_tell}.fail(failure);
    const comm::TimePoint deadline = comm::Clock::now() + time_to_tell;
    const std::string host = Reach::from(environment_to_tell, place, deadline, access.together, access.others_may_join()).store;
    const std::vector<std::uint16_t> ports = ports_of(place);
    if (place.hosts_store) {
      std::optional<TcpStoreServer> server;
      host_store(server, host, ports, place.size, access, deadline);
      server->fail(failure);
      server->wait_until_told(1, comm::Clock::now() + time_to_tell);
      return;
    }
    const std::uint16_t port = ports.size() == 1 ? ports.front() : StoreSearch{host, ports, place.rank, place.size, access}.port(deadline);
    TcpStore{host, port, deadline, place.rank, place.size, access}.fail(failure);
  } catch (...) {  // the others find out at their deadline
  }
}

/// Calls tell_job() for a rank of the job, with the access settings of its environment.
inline void tell_rank_failure(const comm::Failure& failure, const JobPlace& place) noexcept {
  try {
    tell_job(failure, place, Access::from(environment_to_tell, place.size));
  } catch (...) {  // this rank cannot prove that it belongs to the job
  }
}

}  // namespace pdp::launch::detail
