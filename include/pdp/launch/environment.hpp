#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include <pdp/comm/transport.hpp>
#include <pdp/launch/number.hpp>

namespace pdp::launch {

/// Gives the value of an environment variable, or null: std::getenv, or a stand-in.
using Variables = std::function<const char*(const char* name)>;
inline const char* environment(const char* name) { return std::getenv(name); }

/// Who this process is, and where it finds the others.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;          // among the ranks on this machine
  std::string master_address;  // where the job's store is; empty in a world of one
  std::uint16_t master_port = 0;
  bool hosts_store = false;                           // whether this rank hosts it: rank 0, unless the launcher does
  comm::Duration timeout = std::chrono::seconds{60};  // for the whole start

  /// Whether somebody has started this process as a rank.
  static bool given(const Variables& variable) {
    return variable("RANK") != nullptr || variable("WORLD_SIZE") != nullptr || variable("LOCAL_RANK") != nullptr;
  }
  static comm::Duration timeout_from(const Variables& variable);
  static Place from(const Variables& variable = environment);
};

/// PDP_TIMEOUT: seconds for the whole start of a job, 60 unless set.
inline comm::Duration Place::timeout_from(const Variables& variable) {
  const char* seconds = variable("PDP_TIMEOUT");
  if (seconds == nullptr) return std::chrono::seconds{60};
  const double value = parse_number("PDP_TIMEOUT (seconds for the start of the job)", seconds, 0.0, 1e8);
  if (!(value > 0))
    throw UsageError{text("PDP_TIMEOUT, the seconds that the start of the job may take, must be above 0; found '", seconds, "'")};
  return std::chrono::duration_cast<comm::Duration>(std::chrono::duration<double>{value});
}

/// From RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun and others set them; one rank alone where none of them is
/// set. Throws UsageError where they contradict each other. PDP_STORE=launcher: whoever started the ranks hosts the store at that address
/// and port.
inline Place Place::from(const Variables& variable) {
  Place place;
  place.timeout = timeout_from(variable);
  const char* rank = variable("RANK");
  const char* size = variable("WORLD_SIZE");
  const char* local_rank = variable("LOCAL_RANK");
  const char* address = variable("MASTER_ADDR");
  const char* port = variable("MASTER_PORT");
  if (rank == nullptr && size == nullptr) {
    for (const char* other : {"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
      if (variable(other) != nullptr)
        throw UsageError{text(other,
                              " is set, but RANK and WORLD_SIZE are not; set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT to join "
                              "a job, or none of them")};
    return place;
  }
  if (size == nullptr) throw UsageError{text("RANK is set (", rank, "), but WORLD_SIZE is not; a rank must know how many there are")};
  if (rank == nullptr) throw UsageError{text("WORLD_SIZE is set (", size, "), but RANK is not; a process must know which rank it is")};
  place.size = parse_number("WORLD_SIZE", size, 1, most_ranks);
  place.rank = parse_number("RANK", rank, 0, most_ranks);
  if (place.rank >= place.size)
    throw UsageError{
        text("RANK is ", place.rank, ", but WORLD_SIZE is ", place.size, "; ranks count from 0, so the largest is ", place.size - 1)};
  if (local_rank != nullptr) place.local_rank = parse_number("LOCAL_RANK", local_rank, 0, most_ranks);
  if (place.local_rank >= place.size)
    throw UsageError{
        text("LOCAL_RANK is ", place.local_rank, ", but WORLD_SIZE is ", place.size, "; a machine cannot hold more ranks than there are")};
  if (place.size == 1) return place;

  if (address == nullptr || *address == '\0')
    throw UsageError{
        text("WORLD_SIZE is ", place.size, ", but MASTER_ADDR is not set; it must be the address of the machine on which rank 0 runs")};
  if (port == nullptr)
    throw UsageError{text("WORLD_SIZE is ", place.size, ", but MASTER_PORT is not set; it must be a free port at ", address,
                          ", the same for all ranks")};
  place.master_address = address;
  place.master_port = static_cast<std::uint16_t>(parse_number("MASTER_PORT", port, 1, 65535));
  const char* store = variable("PDP_STORE");
  if (store != nullptr && std::string_view{store} != "launcher")
    throw UsageError{text("PDP_STORE says who hosts the job's store: 'launcher', or it is not set and rank 0 does; found '", store, "'")};
  place.hosts_store = store == nullptr && place.rank == 0;
  return place;
}

}  // namespace pdp::launch
