#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/core/random.hpp>
#include <pdp/launch/number.hpp>
#include <pdp/launch/slurm.hpp>
#include <pdp/launch/starter.hpp>

namespace pdp::launch {

namespace detail {

/// MPI's launchers tell nobody where rank 0 runs. It is known only where all ranks are on this machine.
inline std::string mpi_address(const Variables& variable, int size, const char* size_name, const char* here_name) {
  constexpr const char* wish = "; set MASTER_ADDR to the address of the machine on which rank 0 runs, the same for all ranks";
  const char* here = variable(here_name);
  if (here == nullptr)
    throw UsageError{
        text(size_name, " is ", size, ", but ", here_name, " is not set, so the ranks may be on several machines or on one", wish)};
  if (const int number = parse_number(here_name, here, 1, size); number < size)
    throw UsageError{text(size_name, " is ", size, ", but ", here_name, " is ", number, ", so the ranks are on several machines", wish)};
  return "127.0.0.1";
}

/// From the first of the variables that is set: each must have one value on all ranks of a job, and another for each job. Two jobs at once
/// take the same port with a chance of 1 in 20480.
inline std::uint16_t mpi_port(const Variables& variable, int size, const char* size_name, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* job = variable(name); job != nullptr && *job != '\0')
      return static_cast<std::uint16_t>(first_derived_port + random::mix(random::hash(std::string_view{job})) % derived_ports);
  throw UsageError{text(size_name, " is ", size, ", but MASTER_PORT is not set, and neither is ", *names.begin(),
                        ", which would tell this job from others; set MASTER_PORT to a free port, the same for all ranks")};
}

/// Whether it is Slurm itself that speaks PMI: srun does with some of its plugins, and says the same in its own variables. Throws
/// UsageError where they say something else: variables that an outer launcher has left behind would make a rank a world of its own.
inline bool pmi_of_slurm(const Variables& variable) {
  const std::optional<Starter> slurm = slurm_starter(variable);
  if (!slurm || variable("MPI_LOCALRANKID") != nullptr || variable("MPI_LOCALNRANKS") != nullptr) return false;
  const auto value = [&](const char* name) { return std::string_view{variable(name) != nullptr ? variable(name) : "nothing"}; };
  if (value("PMI_RANK") == value(slurm->rank) && value("PMI_SIZE") == value(slurm->size)) return true;
  throw UsageError{text("PMI_RANK is ", value("PMI_RANK"), " and PMI_SIZE is ", value("PMI_SIZE"), ", but ", slurm->rank, " is ",
                        value(slurm->rank), " and ", slurm->size, " is ", value(slurm->size),
                        "; unset those of the launcher that did not start this process, or set RANK and WORLD_SIZE")};
}

}  // namespace detail

/// The mpirun or mpiexec of Open MPI, or of MPICH, Intel MPI and others that speak PMI.
inline std::optional<Starter> mpi_starter(const Variables& variable) {
  if (variable("OMPI_COMM_WORLD_RANK") != nullptr)
    return Starter{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                   [](const Variables& from, int size) {
                     return detail::mpi_address(from, size, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE");
                   },
                   [](const Variables& from, int size) {  // up to version 4, and from 5 on
                     return detail::mpi_port(from, size, "OMPI_COMM_WORLD_SIZE", {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"});
                   }};
  if (variable("PMI_RANK") != nullptr && !detail::pmi_of_slurm(variable))
    return Starter{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                   [](const Variables& from, int size) { return detail::mpi_address(from, size, "PMI_SIZE", "MPI_LOCALNRANKS"); },
                   // Intel MPI's. MPICH gives no name to a job: PMI_FD is a number that other jobs have, too, and PMIX_NAMESPACE may be
                   // that of a step of Slurm in which several mpiexec run.
                   [](const Variables& from, int size) { return detail::mpi_port(from, size, "PMI_SIZE", {"I_MPI_HYDRA_UUID"}); }};
  return std::nullopt;
}

}  // namespace pdp::launch
