#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/launch/host_list.hpp>
#include <pdp/launch/number.hpp>
#include <pdp/launch/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Slurm's numbers of jobs and steps have 32 bits.
inline std::uint64_t slurm_number(const Variables& variable, const char* name) {
  const char* words = variable(name);
  if (words == nullptr)
    throw UsageError{
        text("SLURM_PROCID is set, but ", name,
             " is not, from which the port of the job's store follows; set MASTER_PORT to a free port, the same for all ranks")};
  return parse_number<std::uint64_t>(name, words, 0, 0xffffffffu);
}

/// The host of the step's rank 0, by the name that Slurm has for it.
inline std::string slurm_address(const Variables& variable, int) {
  try {
    return first_host(variable("SLURM_STEP_NODELIST"));
  } catch (const UsageError& error) {
    throw UsageError{text("SLURM_STEP_NODELIST: ", error.what(), "; set MASTER_ADDR to the address of the machine on which rank 0 runs")};
  }
}

/// The first of the ports that Slurm has reserved for the step (where its MpiParams says so: 12000-12999, say); no other step has it. Else
/// 64 ports for the steps of each of 320 jobs. So two steps that run at once take the same port only if they are of one job and a multiple
/// of 64 steps apart, or of jobs that are a multiple of 320 apart.
inline std::uint16_t slurm_port(const Variables& variable, int) {
  if (const char* reserved = variable("SLURM_STEP_RESV_PORTS"); reserved != nullptr) {
    const std::string_view ports{reserved};
    return parse_number<std::uint16_t>("the first port of SLURM_STEP_RESV_PORTS", ports.substr(0, ports.find_first_of("-,")), 1, 65535);
  }
  constexpr std::uint64_t jobs = 320, steps = derived_ports / jobs;
  const std::uint64_t job = slurm_number(variable, "SLURM_JOB_ID"), step = slurm_number(variable, "SLURM_STEP_ID");
  return static_cast<std::uint16_t>(first_derived_port + job % jobs * steps + step % steps);
}

}  // namespace detail

/// Slurm, where this process is a task of a step: started by srun. Throws UsageError where SLURM_STEP_ID is no number.
///
/// A batch script has SLURM_PROCID, too (0), and often SLURM_NTASKS, but is in no step; the shell of an interactive salloc is in a step
/// whose number is none of srun's. A program that one of them runs without srun is one rank, however many tasks the job has asked for.
inline std::optional<Starter> slurm_starter(const Variables& variable) {
  constexpr std::uint64_t last_step_of_srun = 0xfffffff0u;  // Slurm keeps those above for itself
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST"})
    if (variable(name) == nullptr) return std::nullopt;
  if (detail::slurm_number(variable, "SLURM_STEP_ID") > last_step_of_srun) return std::nullopt;
  // SLURM_NTASKS may be the job's.
  const char* size = variable("SLURM_STEP_NUM_TASKS") != nullptr ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  return Starter{"SLURM_PROCID", size, "SLURM_LOCALID", detail::slurm_address, detail::slurm_port, true};
}

}  // namespace pdp::launch
