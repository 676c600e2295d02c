#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/transport.hpp>
#include <pdp/launch/mpi_environment.hpp>
#include <pdp/launch/number.hpp>
#include <pdp/launch/slurm.hpp>
#include <pdp/launch/starter.hpp>

namespace pdp::launch {

/// Who this process is, and where it finds the others.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;          // among the ranks on this machine; 0 where nobody says
  std::string master_address;  // where the job's store is; empty in a world of one
  std::uint16_t master_port = 0;
  bool hosts_store = false;                           // whether this rank hosts it: rank 0, unless the launcher does
  comm::Duration timeout = std::chrono::seconds{60};  // for the whole start

  static bool given(const Variables& variable);
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

namespace detail {

/// Whoever sets RANK and WORLD_SIZE: pdp's own launcher, torchrun, a script. They set MASTER_ADDR and MASTER_PORT, too.
inline std::optional<Starter> plain_starter(const Variables& variable) {
  if (variable("RANK") == nullptr && variable("WORLD_SIZE") == nullptr) return std::nullopt;
  return Starter{"RANK", "WORLD_SIZE", "LOCAL_RANK",
                 [](const Variables&, int size) -> std::string {
                   throw UsageError{text("WORLD_SIZE is ", size,
                                         ", but MASTER_ADDR is not set; it must be the address of the machine on which rank 0 runs")};
                 },
                 [](const Variables& from, int size) -> std::uint16_t {
                   throw UsageError{text("WORLD_SIZE is ", size, ", but MASTER_PORT is not set; it must be a free port at ",
                                         from("MASTER_ADDR"), ", the same for all ranks")};
                 }};
}

/// What has started this process, if anything has. Where launchers are nested, the variables of all of them arrive. The innermost is asked:
/// mpirun runs in a step or a batch script of Slurm, and not the other way round.
inline std::optional<Starter> find_starter(const Variables& variable) {
  if (const std::optional<Starter> plain = plain_starter(variable)) return plain;
  if (const std::optional<Starter> mpi = mpi_starter(variable)) return mpi;
  return slurm_starter(variable);
}

}  // namespace detail

/// Whether somebody has started this process as a rank. A process that mpirun or srun has started alone is free to start ranks of its own.
inline bool Place::given(const Variables& variable) {
  if (variable("RANK") != nullptr || variable("WORLD_SIZE") != nullptr || variable("LOCAL_RANK") != nullptr) return true;
  const std::optional<Starter> starter = detail::find_starter(variable);
  if (!starter) return false;
  const char* size = variable(starter->size);
  return size == nullptr || std::string_view{size} != "1";
}

/// From RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun and others set them; else from the variables of an MPI
/// launcher (see mpi_environment.hpp); else from those of a step of Slurm (see slurm.hpp); one rank alone where there are none of them.
/// LOCAL_RANK, MASTER_ADDR and MASTER_PORT count in any case. Throws UsageError where variables contradict each other or do not suffice.
/// PDP_STORE=launcher: whoever started the ranks hosts the store at that address and port.
inline Place Place::from(const Variables& variable) {
  Place place;
  place.timeout = timeout_from(variable);
  const std::optional<Starter> starter = detail::find_starter(variable);
  if (!starter) {
    for (const char* other : {"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
      if (variable(other) != nullptr)
        throw UsageError{text(other,
                              " is set, but RANK and WORLD_SIZE are not; set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT to join "
                              "a job, or none of them")};
    return place;
  }
  const char* rank = variable(starter->rank);
  const char* size = variable(starter->size);
  if (size == nullptr)
    throw UsageError{text(starter->rank, " is set (", rank, "), but ", starter->size, " is not; a rank must know how many there are")};
  if (rank == nullptr)
    throw UsageError{text(starter->size, " is set (", size, "), but ", starter->rank, " is not; a process must know which rank it is")};
  place.size = parse_number(starter->size, size, 1, most_ranks);
  place.rank = parse_number(starter->rank, rank, 0, most_ranks);
  if (place.rank >= place.size)
    throw UsageError{text(starter->rank, " is ", place.rank, ", but ", starter->size, " is ", place.size,
                          "; ranks count from 0, so the largest is ", place.size - 1)};
  const char* local_name = variable("LOCAL_RANK") != nullptr ? "LOCAL_RANK" : starter->local_rank;
  if (const char* local_rank = variable(local_name)) place.local_rank = parse_number(local_name, local_rank, 0, most_ranks);
  if (place.local_rank >= place.size)
    throw UsageError{text(local_name, " is ", place.local_rank, ", but ", starter->size, " is ", place.size,
                          "; a machine cannot hold more ranks than there are")};
  if (place.size == 1) return place;

  const char* address = variable("MASTER_ADDR");
  const char* port = variable("MASTER_PORT");
  place.master_address = address != nullptr && *address != '\0' ? address : starter->master_address(variable, place.size);
  place.master_port = port != nullptr ? static_cast<std::uint16_t>(parse_number("MASTER_PORT", port, 1, 65535))
                                      : starter->master_port(variable, place.size);
  const char* store = variable("PDP_STORE");
  if (store != nullptr && std::string_view{store} != "launcher")
    throw UsageError{text("PDP_STORE says who hosts the job's store: 'launcher', or it is not set and rank 0 does; found '", store, "'")};
  place.hosts_store = store == nullptr && place.rank == 0;
  return place;
}

}  // namespace pdp::launch
