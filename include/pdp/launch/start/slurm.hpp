#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Returns the name of the variable with the job's number. In a heterogeneous job, this variable has the same value in all components.
const char* slurm_job(const Variables& variable);

}  // namespace detail

/// Returns Slurm as the starter if srun has started this process as a task of a step, else nothing. Throws UsageError if SLURM_STEP_ID is
/// not a number.
///
/// A batch script has SLURM_PROCID, too (0), and often SLURM_NTASKS, but is in no step. The shell of an interactive salloc is in a step
/// with a number that srun does not use. A program that one of them runs without srun is one rank, regardless of the number of tasks of the
/// job.
std::optional<Starter> slurm_starter(const Variables& variable);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/slurm.hpp>
#endif
