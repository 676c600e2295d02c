#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Cores of this machine by number. Machines with more than 1024 are left as they are.
using Cores = cpu_set_t;

/// "0-3,8".
std::string describe(const Cores& cores);

/// The places of OpenMP: the sets of cores to which its library binds threads, in its order. Empty if the program has no such library, or
/// if OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY and KMP_AFFINITY leave threads unbound.
///
/// The library reads them when the program starts and binds the main thread to the first place, whatever other processes do. What that
/// thread starts inherits its binding.
std::vector<Cores> openmp_places();

/// The cores of all places.
Cores all_of(const std::vector<Cores>& places);

/// The cores of one of `ranks` ranks on this machine: its share of the places, which are dealt out in order. Ranks share a place only if
/// there are more ranks than places. Nothing if there are no places: the system's scheduler finds free cores by itself.
std::optional<Cores> share_of(const std::vector<Cores>& places, int rank, int ranks);

/// The cores to which OpenMP has bound the calling thread, if it leaves others free that the thread could use.
std::optional<Cores> narrowed_by_openmp(const std::vector<Cores>& places);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/cores.hpp>
#endif
