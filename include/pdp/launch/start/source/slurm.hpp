#pragma once

/// Definitions for pdp/launch/start/slurm.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/host_list.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/slurm.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Returns whether this process is in a heterogeneous step (srun --het-group=0,1), which has ranks in several Slurm jobs that run as one.
/// The variables SLURM_STEP_* describe only the job of this process, but SLURM_NTASKS and SLURM_PROCID count all tasks of the step. Slurm
/// sets SLURM_HET_SIZE in all of these jobs. In other steps SLURM_NTASKS may be the number of tasks that the job has requested.
PDP_INLINE bool step_of_part(const Variables& variable) {
  const char* own = variable("SLURM_STEP_NUM_TASKS");
  const char* all = variable("SLURM_NTASKS");
  if (own == nullptr || all == nullptr) return false;
  const int tasks = parse_number("SLURM_STEP_NUM_TASKS", own, 1, most_ranks);
  if (tasks >= parse_number("SLURM_NTASKS", all, 1, most_ranks)) return false;
  return variable("SLURM_HET_SIZE") != nullptr || parse_number("SLURM_PROCID", variable("SLURM_PROCID"), 0, most_ranks) >= tasks;
}

PDP_INLINE const char* slurm_job(const Variables& variable) {
  return variable("SLURM_JOB_ID_HET_GROUP_0") != nullptr ? "SLURM_JOB_ID_HET_GROUP_0" : "SLURM_JOB_ID";
}

/// Returns the number of a job or step, which has 32 bits in Slurm. Throws UsageError if the variable is unset or not such a number.
PDP_INLINE std::uint64_t slurm_number(const Variables& variable, const char* name) {
  const char* words = variable(name);
  if (words == nullptr)
    throw UsageError{
        text("SLURM_PROCID is set, but ", name,
             ", from which the port of the job's store is derived, is not; set MASTER_PORT to a free port, the same for all ranks")};
  return parse_number<std::uint64_t>(name, words, 0, 0xffffffffu);
}

/// Returns Slurm's name of the host of the step's rank 0.
PDP_INLINE std::string slurm_address(const Variables& variable, int) {
  const bool first_part = step_of_part(variable) && variable("SLURM_JOB_NODELIST_HET_GROUP_0") != nullptr;
  const char* list = first_part ? "SLURM_JOB_NODELIST_HET_GROUP_0" : "SLURM_STEP_NODELIST";
  try {
    return first_host(variable(list));
  } catch (const UsageError& error) {
    throw UsageError{text(list, ": ", error.what(), "; set MASTER_ADDR to the address of the machine on which rank 0 runs")};
  }
}

/// Returns the ports for the store of a step. If Slurm has reserved ports for the step (MpiParams=ports=12000-12999), returns the first of
/// them, which no other step has.
///
/// Otherwise the first port is first_derived_port + (job mod 320) * 64 + step mod 64. Further ports follow in case it is taken. So two
/// steps of one job have the same first port only if their numbers differ by a multiple of 64. Steps of different jobs have the same one
/// only if the numbers of the jobs differ by a multiple of 320.
PDP_INLINE std::vector<std::uint16_t> slurm_ports(const Variables& variable, int) {
  if (const char* reserved = variable("SLURM_STEP_RESV_PORTS"); reserved != nullptr && !step_of_part(variable)) {
    const std::string_view ports{reserved};
    return {parse_number<std::uint16_t>("the first port of SLURM_STEP_RESV_PORTS", ports.substr(0, ports.find_first_of("-,")), 1, 65535)};
  }
  constexpr std::uint64_t jobs = 320, steps = derived_ports / jobs;
  const std::uint64_t job = slurm_number(variable, slurm_job(variable)), step = slurm_number(variable, "SLURM_STEP_ID");
  std::vector<std::uint16_t> ports = ports_of_job(text("slurm ", job, '.', step));
  ports.front() = static_cast<std::uint16_t>(first_derived_port + job % jobs * steps + step % steps);
  return ports;
}

PDP_INLINE bool all_in_one_node(const Variables& variable, int) {
  const char* nodes = variable("SLURM_STEP_NUM_NODES");
  return nodes != nullptr && std::string_view{nodes} == "1" && !step_of_part(variable);
}

}  // namespace detail

PDP_INLINE std::optional<Starter> slurm_starter(const Variables& variable) {
  constexpr std::uint64_t last_step_of_srun = 0xfffffff0u;  // Slurm reserves higher numbers for itself
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST"})
    if (variable(name) == nullptr) return std::nullopt;
  if (detail::slurm_number(variable, "SLURM_STEP_ID") > last_step_of_srun) return std::nullopt;
  const bool of_step = variable("SLURM_STEP_NUM_TASKS") != nullptr && !detail::step_of_part(variable);
  return Starter{.rank = "SLURM_PROCID",
                 .size = of_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                 .local_rank = "SLURM_LOCALID",
                 .master_address = detail::slurm_address,
                 .master_ports = detail::slurm_ports,
                 .all_here = detail::all_in_one_node,
                 .names_host = true};
}

}  // namespace pdp::launch
