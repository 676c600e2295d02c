#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

namespace detail {

/// Null if the variable is not set, or empty.
const char* given(const Variables& variable, const char* name);

}  // namespace detail

/// The launcher, other than those that set RANK and WORLD_SIZE, that has started this process as one rank of several; nothing if none has,
/// or if it does not say of how many. If launchers are nested, the variables of all of them arrive, and the innermost counts: mpirun runs
/// in a step or a batch script of Slurm, and not the other way round. Throws UsageError if it cannot be told which one that is.
std::optional<Starter> launcher_starter(const Variables& variable);

/// Throws UsageError if a launcher has started this process as one of several ranks without saying of how many, or a part of what it says
/// is missing, so that each would train alone and write the same files. For a process that find_starter knows nothing of.
void refuse_rank_without_size(const Variables& variable);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/launcher_variables.hpp>
#endif
