#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// A set of cores of this machine, by number. Cores from number 1024 on are ignored.
using Cores = cpu_set_t;

/// Returns the cores as a list, such as "0-3,8".
std::string describe(const Cores& cores);

/// Returns the places of OpenMP: the sets of cores to which the OpenMP library binds threads, in the library's order. Empty if the program
/// has no such library, or if OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY and KMP_AFFINITY leave threads unbound.
///
/// The library reads these variables when the program starts and binds the main thread to the first place, regardless of other processes.
/// Threads and processes that the main thread starts inherit its binding.
std::vector<Cores> openmp_places();

/// Returns the cores of all places.
Cores all_of(const std::vector<Cores>& places);

/// Returns the cores for rank number `rank` of the `ranks` ranks on this machine: its share of the places, which are divided among the
/// ranks in order. Ranks share a place only if there are more ranks than places. Returns nothing if there are no places: the scheduler of
/// the system then finds free cores.
std::optional<Cores> share_of(const std::vector<Cores>& places, int rank, int ranks);

/// Returns the cores to which OpenMP has bound the calling thread, or nothing if the thread may run on the cores of all places.
std::optional<Cores> narrowed_by_openmp(const std::vector<Cores>& places);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/cores.hpp>
#endif
