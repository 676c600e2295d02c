#include <pdp/launch/access/access.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/launch/start/number.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "fuzz.hpp"

namespace launch = pdp::launch;

namespace {

// The variables that the inputs set. PDP_SECRET_FILE is left out, since it would open any file. The seeds depend on the order: add new
// names at the end.
constexpr std::array names{"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "PDP_RENDEZVOUS",
                           "PDP_STORE",
                           "PDP_TIMEOUT",
                           "PDP_HEARTBEAT",
                           "PDP_JOB",
                           "PDP_ATTEMPT",
                           "PDP_SECRET",
                           "PDP_INSECURE",
                           "PDP_MUNGE_SOCKET",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID",
                           "SLURM_PROCID",
                           "SLURM_LOCALID",
                           "SLURM_NTASKS",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_STEP_NUM_NODES",
                           "SLURM_STEP_NODELIST",
                           "SLURM_STEP_RESV_PORTS",
                           "SLURM_RESTART_COUNT",
                           "GROUP_WORLD_SIZE",
                           "TORCHELASTIC_RESTART_COUNT",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "OMPI_MCA_ess_base_jobid",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "MPI_LOCALNRANKS",
                           "I_MPI_HYDRA_UUID",
                           "MPIRANK",
                           "MPISIZE",
                           "PDP_DEADLINE",
                           "PDP_INTERFACE",
                           "FLUX_JOB_ID",
                           "FLUX_JOB_NNODES",
                           "FLUX_JOB_SIZE",
                           "FLUX_TASK_LOCAL_ID",
                           "FLUX_TASK_RANK",
                           "PALS_APID",
                           "PALS_RANKID",
                           "PALS_SIZE",
                           "PALS_LOCAL_RANKID",
                           "PALS_LOCAL_SIZE",
                           "MV2_COMM_WORLD_RANK",
                           "MV2_COMM_WORLD_SIZE",
                           "MV2_COMM_WORLD_LOCAL_RANK",
                           "MV2_COMM_WORLD_LOCAL_SIZE",
                           "JSM_NAMESPACE_RANK",
                           "JSM_NAMESPACE_SIZE",
                           "JSM_NAMESPACE_LOCAL_RANK",
                           "JSM_NAMESPACE_LOCAL_SIZE",
                           "PMIX_NAMESPACE",
                           "PMIX_RANK",
                           "PMI_ID",
                           "PMI_FD",
                           "PMI_PORT",
                           "PMI_LOCAL_RANK",
                           "PMI_LOCAL_SIZE",
                           "MPI_NRANKS",
                           "MPI_RANKID",
                           "MPI_LOCALRANKID",
                           "MPIRUN_RANK",
                           "SLURM_HET_SIZE",
                           "SLURM_JOB_ID_HET_GROUP_0",
                           "SLURM_JOB_NODELIST_HET_GROUP_0",
                           "SLURM_NODE_ALIASES",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE"};

void check(const launch::JobPlace& place, bool has_store) {
  if (place.size < 1 || place.size > launch::most_ranks || place.rank < 0 || place.rank >= place.size) std::abort();
  if (place.local_rank && (*place.local_rank < 0 || *place.local_rank >= place.size)) std::abort();
  if (place.timeout <= pdp::comm::Duration::zero() || place.heartbeat < pdp::comm::Duration::zero()) std::abort();
  const bool in_network = !place.master_address.empty() && place.master_port > 0;
  if (has_store && place.size > 1 && place.folder.empty() == !in_network) std::abort();
}

}  // namespace

/// Checks that any values of the variables give a valid JobPlace and Access, or UsageError. The input is a list of entries: the index of a
/// name (one byte), the value, a zero byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::map<std::string, std::string, std::less<>> values;
  std::string_view left{reinterpret_cast<const char*>(bytes), size};
  while (!left.empty()) {
    const auto* const name = names[static_cast<std::uint8_t>(left.front()) % names.size()];
    left.remove_prefix(1);
    const std::size_t end = std::min(left.find('\0'), left.size());
    values[name] = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  const launch::Variables variables = [&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
  const fuzz::AllocationBound bound{200'000 + 200 * size};
  for (const bool has_store : {true, false}) {
    try {
      check(launch::JobPlace::from(variables, {}, has_store), has_store);
    } catch (const pdp::UsageError&) {
    }
  }
  try {
    static_cast<void>(launch::JobPlace::given(variables));
    const launch::Access access = launch::Access::from(variables, 2);
    if (access.secret && access.secret->bytes().size() < launch::Access::shortest_secret) std::abort();
  } catch (const pdp::UsageError&) {
  }
  return 0;
}
