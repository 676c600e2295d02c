#pragma once

/// Where the store of a job is, and how a process tells the other ranks there why the job cannot start.

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

/// The folder of this attempt at this job: attempts must not find what an earlier one has left.
inline std::filesystem::path folder_of(const std::string& meeting, const comm::Job& job) {
  std::filesystem::path folder = meeting;
  if (const std::string name = job.name + '/' + job.attempt; name != "/") folder /= "job-" + FileStore::file_name(name);
  return folder;
}

/// Hosts the job's store on the first of the ports that is free, and returns it. Throws ConfigError as TcpStoreServer does.
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

/// The ports at one of which the job's store is, in the order in which its host tries them.
inline std::vector<std::uint16_t> ports_of(const JobPlace& place) {
  std::vector<std::uint16_t> ports{place.master_port};
  ports.insert(ports.end(), place.more_ports.begin(), place.more_ports.end());
  return ports;
}

/// The environment without what only a rank that joins needs: a wrong value there may be the very reason that the others are to be told.
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

/// Tells the other ranks of a job why it cannot start: through its store, which this process hosts meanwhile if its place says so. Takes
/// twice time_to_tell at most, and what the system may take to resolve a name.
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
  } catch (...) {  // they find out by themselves, at their deadline
  }
}

/// The same of a rank of the job.
inline void tell_rank_failure(const comm::Failure& failure, const JobPlace& place) noexcept {
  try {
    tell_job(failure, place, Access::from(environment_to_tell, place.size));
  } catch (...) {  // this rank cannot prove that it belongs to the job
  }
}

}  // namespace pdp::launch::detail
