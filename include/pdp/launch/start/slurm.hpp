#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// The variable with the number of the job, the same in all parts of a heterogeneous one.
const char* slurm_job(const Variables& variable);

}  // namespace detail

/// Slurm, where this process is a task of a step: started by srun. Throws UsageError where SLURM_STEP_ID is no number.
///
/// A batch script has SLURM_PROCID, too (0), and often SLURM_NTASKS, but is in no step; the shell of an interactive salloc is in a step
/// whose number is none of srun's. A program that one of them runs without srun is one rank, however many tasks the job has asked for.
std::optional<Starter> slurm_starter(const Variables& variable);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/slurm.hpp>
#endif
