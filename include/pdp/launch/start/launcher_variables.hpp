#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Returns the value of a variable, or null if it is unset or empty.
const char* given(const Variables& variable, const char* name);

}  // namespace detail

/// Returns the launcher that has started this process as a rank of a job, if it does not set RANK and WORLD_SIZE. Returns nothing if there
/// is no such launcher, or if it does not say how many ranks there are.
///
/// If launchers are nested, a process has the variables of all of them, and the innermost counts: mpirun runs in a step or a batch script
/// of Slurm, not the other way round. Throws UsageError if the innermost launcher cannot be determined.
std::optional<Starter> launcher_starter(const Variables& variable);

/// Throws UsageError if a launcher has started this process as one of several ranks, but does not say how many, or if some of its variables
/// are missing. Otherwise each process would train alone and write the same files. Call it if find_starter has found nothing.
void refuse_rank_without_size(const Variables& variable);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/launcher_variables.hpp>
#endif
