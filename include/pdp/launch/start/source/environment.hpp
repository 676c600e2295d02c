#pragma once

/// Definitions for pdp/launch/start/environment.hpp; see pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/net/host_name.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/launch/start/launcher_variables.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Returns the time in seconds that a variable sets, or nothing if it is not set. Throws UsageError if it is not a number in range. The
/// message contains `purpose`, the use of the variable, and `range`.
PDP_INLINE std::optional<comm::Duration> seconds_from(const Variables& variable, const char* name, std::string_view purpose,
                                                      std::string_view range, bool (*in_range)(double seconds)) {
  constexpr double most = 1e8;
  const char* words = variable(name);
  if (words == nullptr) return std::nullopt;
  const std::optional<double> seconds = read_number<double>(words);
  if (!seconds || !in_range(*seconds) || *seconds > most)
    throw UsageError{text(name, ", the seconds ", purpose, ", must be a number ", range, "; found ", in_quotes(words))};
  return std::chrono::duration_cast<comm::Duration>(std::chrono::duration<double>{*seconds});
}

inline constexpr std::string_view above_0 = "above 0 and at most 100000000";

}  // namespace detail

PDP_INLINE comm::Duration JobPlace::timeout_from(const Variables& variable) {
  return detail::seconds_from(variable, "PDP_TIMEOUT", "that the start of the job may take", detail::above_0,
                              [](double seconds) { return seconds > 0; })
      .value_or(JobPlace{}.timeout);
}

PDP_INLINE comm::Duration JobPlace::heartbeat_from(const Variables& variable) {
  return detail::seconds_from(variable, "PDP_HEARTBEAT", "for which a rank may be silent", "from 1 to 100000000, or 0 for no limit",
                              [](double seconds) { return seconds == 0 || seconds >= 1; })
      .value_or(JobPlace{}.heartbeat);
}

PDP_INLINE std::optional<comm::Duration> JobPlace::deadline_from(const Variables& variable) {
  return detail::seconds_from(variable, "PDP_DEADLINE", "for which a call may wait for other ranks", detail::above_0,
                              [](double seconds) { return seconds > 0; });
}

namespace detail {

/// Returns the name of a job that torchrun has started, the same on all its ranks. Empty if torchrun has not started it.
PDP_INLINE std::string job_of_torchrun(const Variables& variable) {
  const char* run = given(variable, "TORCHELASTIC_RUN_ID");
  const char* port = given(variable, "MASTER_PORT");
  return run != nullptr && port != nullptr ? text("torchrun ", run, ' ', port) : std::string{};
}

/// Returns whether torchrun itself listens on MASTER_PORT, with its agent's store. That store speaks a protocol of PyTorch's own.
PDP_INLINE bool port_is_torchruns(const Variables& variable) {
  const char* uses = variable("TORCHELASTIC_USE_AGENT_STORE");
  return uses != nullptr && std::string_view{uses} == "True" && variable("PDP_STORE") == nullptr && !job_of_torchrun(variable).empty();
}

/// Returns the starter that has set RANK or WORLD_SIZE, if any: pdp's own launcher, torchrun or a script. These set MASTER_ADDR and
/// MASTER_PORT, too.
PDP_INLINE std::optional<Starter> plain_starter(const Variables& variable) {
  if (variable("RANK") == nullptr && variable("WORLD_SIZE") == nullptr) return std::nullopt;
  return Starter{.rank = "RANK",
                 .size = "WORLD_SIZE",
                 .local_rank = "LOCAL_RANK",
                 .job = job_of_torchrun(variable),
                 .master_address = [](const Variables&, int size) -> std::string {
                   throw UsageError{text("WORLD_SIZE is ", size,
                                         ", but MASTER_ADDR is not set; it must be the address of the machine on which rank 0 runs")};
                 },
                 .master_ports = [](const Variables& from, int size) -> std::vector<std::uint16_t> {
                   const char* address = from("MASTER_ADDR");
                   throw UsageError{text("WORLD_SIZE is ", size, ", but MASTER_PORT is not set; it must be a free port at ",
                                         address != nullptr ? in_quotes(address) : "the machine of rank 0", ", the same for all ranks")};
                 }};
}

PDP_INLINE std::optional<Starter> find_starter(const Variables& variable) {
  if (std::optional<Starter> plain = plain_starter(variable)) return plain;
  return launcher_starter(variable);
}

}  // namespace detail

PDP_INLINE bool JobPlace::given(const Variables& variable) {
  if (variable("RANK") != nullptr || variable("WORLD_SIZE") != nullptr || variable("LOCAL_RANK") != nullptr) return true;
  const std::optional<Starter> starter = detail::find_starter(variable);
  if (!starter) return false;
  const char* size = variable(starter->size);
  return size == nullptr || std::string_view{size} != "1";
}

PDP_INLINE JobPlace JobPlace::from(const Variables& variable, std::string_view rendezvous, bool has_store) {
  JobPlace place;
  place.timeout = timeout_from(variable);
  place.heartbeat = heartbeat_from(variable);
  place.deadline = deadline_from(variable);
  const RendezvousUrl meeting = RendezvousUrl::from(rendezvous, variable);
  const std::optional<Starter> starter = detail::find_starter(variable);
  if (!starter) {
    for (const char* other : {"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
      if (variable(other) != nullptr)
        throw UsageError{text(other,
                              " is set, but RANK and WORLD_SIZE are not; set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT to join "
                              "a job, or none of them")};
    }
    if (meeting.kind != RendezvousUrl::Kind::environment)
      throw UsageError{text(rendezvous.empty() ? "PDP_RENDEZVOUS is set" : "--rendezvous is given",
                            ", but RANK and WORLD_SIZE are not; set them, since a rendezvous does not assign ranks")};
    if (has_store) refuse_rank_without_size(variable);
    return place;
  }
  const char* rank = variable(starter->rank);
  const char* size = variable(starter->size);
  if (size == nullptr)
    throw UsageError{text(starter->rank, " is ", in_quotes(rank), ", but ", starter->size, " is not set; set it to the number of ranks")};
  if (rank == nullptr)
    throw UsageError{
        text(starter->size, " is ", in_quotes(size), ", but ", starter->rank, " is not set; set it to the rank of this process")};
  place.size = parse_number(starter->size, size, 1, most_ranks);
  place.rank = parse_number(starter->rank, rank, 0, most_ranks);
  if (place.rank >= place.size)
    throw UsageError{text(starter->rank, " is ", place.rank, ", but ", starter->size, " is ", place.size,
                          "; ranks count from 0, so the largest is ", place.size - 1)};
  const char* local_name = variable("LOCAL_RANK") != nullptr ? "LOCAL_RANK" : starter->local_rank;
  const char* local_rank = local_name != nullptr ? variable(local_name) : nullptr;
  if (local_rank != nullptr) place.local_rank = parse_number(local_name, local_rank, 0, most_ranks);
  if (place.local_rank && *place.local_rank >= place.size)
    throw UsageError{text(local_name, " is ", *place.local_rank, ", but ", starter->size, " is ", place.size,
                          "; it counts from 0, so the largest is ", place.size - 1)};
  if (place.size == 1 || !has_store) return place;

  if (meeting.kind == RendezvousUrl::Kind::file) {
    place.folder = meeting.folder;
    return place;
  }
  if (meeting.kind == RendezvousUrl::Kind::tcp) {
    place.master_address = meeting.host;
    place.master_port = meeting.port;
  } else {
    const char* address = detail::given(variable, "MASTER_ADDR");
    const char* port = variable("MASTER_PORT");
    place.master_address = address != nullptr ? address : starter->master_address(variable, place.size);
    if (address != nullptr) check_host("MASTER_ADDR", place.master_address);
    place.master_by_name = address == nullptr && starter->names_host;
    std::vector<std::uint16_t> ports;
    if (port != nullptr) ports = {static_cast<std::uint16_t>(parse_number("MASTER_PORT", port, 1, 65535))};
    if (port == nullptr)
      ports = starter->master_ports(variable, place.size);
    else if (detail::port_is_torchruns(variable))
      ports = ports_of_job(detail::job_of_torchrun(variable));
    place.master_port = ports.front();
    place.more_ports.assign(ports.begin() + 1, ports.end());
  }
  const char* store = variable("PDP_STORE");
  if (store != nullptr && std::string_view{store} != "launcher")
    throw UsageError{text("PDP_STORE must be 'launcher', or unset if rank 0 hosts the job's store; found ", in_quotes(store))};
  place.hosts_store = store == nullptr && place.rank == 0;
  return place;
}

}  // namespace pdp::launch
