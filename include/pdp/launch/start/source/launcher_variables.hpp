#pragma once

/// Definitions for pdp/launch/start/launcher_variables.hpp; see pdp/core/separate_compilation.hpp.

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/launcher_variables.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/slurm.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// The environment variables by which a launcher tells a process that it is one rank of several.
struct LauncherVariables {
  using Names = std::array<const char*, 2>;  // the first that is set counts

  std::string_view launcher;
  const char* rank;
  Names size{};                      // ranks of the job
  Names local_rank{};                // rank among those of this host
  Names local_size{};                // ranks on this host
  Names job{};                       // distinguishes this job from others; the same on all its ranks
  const char* nodes = nullptr;       // hosts of the job
  bool speaks_pmi = false;           // also sets PMI_RANK and PMI_SIZE
  bool size_may_be_missing = false;  // in some versions
};

/// Launchers that set the rank and the size. A launcher that may run inside another comes before it. Slurm is in slurm.hpp, RANK and
/// WORLD_SIZE are in environment.hpp.
inline constexpr std::array launchers_of_ranks{
    LauncherVariables{.launcher = "mpirun of Open MPI",
                      .rank = "OMPI_COMM_WORLD_RANK",
                      .size = {"OMPI_COMM_WORLD_SIZE"},
                      .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
                      .local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
                      .job = {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}},  // the first up to version 4, the second from version 5 on
    LauncherVariables{.launcher = "mpirun_rsh of MVAPICH2",
                      .rank = "MV2_COMM_WORLD_RANK",
                      .size = {"MV2_COMM_WORLD_SIZE"},
                      .local_rank = {"MV2_COMM_WORLD_LOCAL_RANK"},
                      .local_size = {"MV2_COMM_WORLD_LOCAL_SIZE"}},
    LauncherVariables{.launcher = "mpirun_rsh of MVAPICH 3",
                      .rank = "MVP_COMM_WORLD_RANK",
                      .size = {"MVP_COMM_WORLD_SIZE"},
                      .local_rank = {"MVP_COMM_WORLD_LOCAL_RANK"},
                      .local_size = {"MVP_COMM_WORLD_LOCAL_SIZE"}},
    LauncherVariables{.launcher = "horovodrun",
                      .rank = "HOROVOD_RANK",
                      .size = {"HOROVOD_SIZE"},
                      .local_rank = {"HOROVOD_LOCAL_RANK"},
                      .local_size = {"HOROVOD_LOCAL_SIZE"}},
    LauncherVariables{.launcher = "mpirun of Platform MPI",
                      .rank = "MPI_RANKID",
                      .size = {"MPI_NRANKS"},
                      .local_rank = {"MPI_LOCALRANKID"},
                      .local_size = {"MPI_LOCALNRANKS"}},
    LauncherVariables{.launcher = "mpirun of NEC MPI", .rank = "MPIRANK", .size = {"MPISIZE"}},
    LauncherVariables{.launcher = "poe of IBM", .rank = "MP_CHILD", .size = {"MP_PROCS"}},
    LauncherVariables{.launcher = "mpiexec of HPE Cray PALS",
                      .rank = "PALS_RANKID",
                      .size = {"PALS_SIZE", "PMI_SIZE"},
                      .local_rank = {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
                      .local_size = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
                      .job = {"PALS_APID"},
                      .speaks_pmi = true,
                      .size_may_be_missing = true},
    LauncherVariables{.launcher = "jsrun of IBM",
                      .rank = "JSM_NAMESPACE_RANK",
                      .size = {"JSM_NAMESPACE_SIZE"},
                      .local_rank = {"JSM_NAMESPACE_LOCAL_RANK"},
                      .local_size = {"JSM_NAMESPACE_LOCAL_SIZE"},
                      .job = {"PMIX_NAMESPACE"}},
    LauncherVariables{.launcher = "flux run",
                      .rank = "FLUX_TASK_RANK",
                      .size = {"FLUX_JOB_SIZE"},
                      .local_rank = {"FLUX_TASK_LOCAL_ID"},
                      .job = {"FLUX_JOB_ID"},
                      .nodes = "FLUX_JOB_NNODES",
                      .speaks_pmi = true},
};

/// Launchers that speak PMI: mpiexec and mpirun of MPICH, Intel MPI, MVAPICH2, ParaStation MPI. srun, flux and PALS also speak it, but set
/// variables of their own, too. MPICH does not name a job. PMIX_NAMESPACE would not do as a name: it may be that of a Slurm step in which
/// several mpiexec run.
inline constexpr LauncherVariables pmi_launcher{.launcher = "mpiexec of MPICH, Intel MPI and others that speak PMI",
                                                .rank = "PMI_RANK",
                                                .size = {"PMI_SIZE"},
                                                .local_rank = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
                                                .local_size = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
                                                .job = {"I_MPI_HYDRA_UUID"}};

/// A launcher that tells a process that it is one of several ranks, but not how many there are.
struct LauncherWithoutSize {
  std::string_view launcher;
  const char* rank;
  int alone = -1;  // value of `rank` that the only process may have, too: the job's script, or the one machine of a small job
};
inline constexpr std::array launchers_without_size{
    LauncherWithoutSize{"a launcher that speaks PMIx, such as prterun,", "PMIX_RANK"},
    LauncherWithoutSize{"aprun of Cray ALPS", "ALPS_APP_PE"},
    LauncherWithoutSize{"mpiexec of MPICH with -pmi-port", "PMI_ID"},
    LauncherWithoutSize{"mpiexec of HPE Cray PALS", "PALS_RANKID"},
    LauncherWithoutSize{"blaunch of LSF", "LSF_PM_TASKID"},
    LauncherWithoutSize{"pbsdsh of PBS", "PBS_NODENUM", 0},
    LauncherWithoutSize{"pbsdsh of PBS", "PBS_VNODENUM", 0},
    LauncherWithoutSize{"pbsdsh of PBS", "PBS_TASKNUM", 1},
    LauncherWithoutSize{"mpirun_rsh of MVAPICH 1", "MPIRUN_RANK"},
    LauncherWithoutSize{"AWS Batch", "AWS_BATCH_JOB_NODE_INDEX", 0},
    LauncherWithoutSize{"Volcano", "VC_TASK_INDEX", 0},
    LauncherWithoutSize{"an indexed job of Kubernetes", "JOB_COMPLETION_INDEX", 0},
};

namespace detail {

PDP_INLINE const char* given(const Variables& variable, const char* name) {
  const char* value = variable(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

/// Returns the first of the names that is set, else null.
PDP_INLINE const char* first_set(const Variables& variable, const LauncherVariables::Names& names) {
  for (const char* name : names)
    if (name != nullptr && variable(name) != nullptr) return name;
  return nullptr;
}

/// Returns the first of the names that is set, else the first name. Null if there are none.
PDP_INLINE const char* name_of(const Variables& variable, const LauncherVariables::Names& names) {
  const char* name = first_set(variable, names);
  return name != nullptr ? name : names.front();
}

/// Identifies the proxy of Hydra, the mpiexec of MPICH. The proxy has started all ranks of the job on this host and holds the other end of
/// the socket PMI_FD. Returns its process id and start time, or an empty string if that socket is not Hydra's. Sends nothing.
PDP_INLINE std::string hydra_proxy(const Variables& variable) {
  const char* words = given(variable, "PMI_FD");
  if (words == nullptr) return {};
  int descriptor = -1;
  const std::string_view number{words};
  if (std::from_chars(number.data(), number.data() + number.size(), descriptor).ec != std::errc{}) return {};
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return {};
  // The program name, which may contain anything, is in brackets before field 3. The start time is field 22.
  std::ifstream file{text("/proc/", peer.pid, "/stat")};
  const std::string status{std::istreambuf_iterator<char>{file}, {}};
  if (status.find(" (hydra_pmi_proxy)") == std::string::npos) return {};
  std::size_t at = status.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = status.find(' ', at + 1);
  if (at == std::string::npos) return {};
  return text("hydra ", peer.pid, ' ', status.substr(at + 1, status.find(' ', at + 1) - at - 1));
}

PDP_INLINE bool all_ranks_here(const LauncherVariables& launcher, const Variables& variable, int size) {
  if (const char* name = first_set(variable, launcher.local_size)) return variable(name) == std::to_string(size);
  return launcher.nodes != nullptr && variable(launcher.nodes) != nullptr && std::string_view{variable(launcher.nodes)} == "1";
}

/// Returns a name that distinguishes the job from others, the same on all its ranks. Empty if the launcher gives none.
PDP_INLINE std::string job_of(const LauncherVariables& launcher, const Variables& variable) {
  for (const char* name : launcher.job)
    if (name != nullptr)
      if (const char* job = given(variable, name)) return job;
  // The names below are the same on all ranks of one host only.
  const char* size = variable(name_of(variable, launcher.size));
  const char* here = launcher.local_size.front() != nullptr ? variable(name_of(variable, launcher.local_size)) : nullptr;
  if (size == nullptr || here == nullptr || std::string_view{size} != here) return {};
  if (const char* port = given(variable, "PMI_PORT")) return port;
  return hydra_proxy(variable);
}

/// Returns the address of rank 0, which these launchers do not give. It is known only if all ranks are on this host. Throws UsageError
/// otherwise.
PDP_INLINE std::string address_on_this_host(const LauncherVariables& launcher, const Variables& variable, int size) {
  constexpr const char* wish = "; set MASTER_ADDR to the address of the machine on which rank 0 runs, the same for all ranks";
  const char* size_name = name_of(variable, launcher.size);
  if (const char* name = first_set(variable, launcher.local_size)) static_cast<void>(parse_number(name, variable(name), 1, size));
  if (all_ranks_here(launcher, variable, size)) return "127.0.0.1";
  const char* here_name = launcher.nodes != nullptr ? launcher.nodes : name_of(variable, launcher.local_size);
  if (here_name == nullptr) throw UsageError{text(size_name, " is ", size, ", but MASTER_ADDR is not set", wish)};
  const char* found = variable(here_name);
  if (found == nullptr)
    throw UsageError{
        text(size_name, " is ", size, ", but ", here_name, " is not set, so the ranks may be on several machines or on one", wish)};
  throw UsageError{
      text(size_name, " is ", size, ", but ", here_name, " is ", in_quotes(found), ", so the ranks are on several machines", wish)};
}

PDP_INLINE Starter starter_of(const LauncherVariables& launcher, const Variables& variable) {
  return {.rank = launcher.rank,
          .size = name_of(variable, launcher.size),
          .local_rank = name_of(variable, launcher.local_rank),
          .job = job_of(launcher, variable),
          .master_address = [&launcher](const Variables& from, int size) { return address_on_this_host(launcher, from, size); },
          .master_ports =
              [&launcher](const Variables& from, int size) {
                const std::string job = job_of(launcher, from);
                if (job.empty()) {
                  throw UsageError{text(name_of(from, launcher.size), " is ", size, ", but MASTER_PORT is not set, and ",
                                        launcher.job.front() != nullptr
                                            ? text(launcher.job.front(), ", which would name this job, is not set either")
                                            : "nothing else names this job",
                                        "; set MASTER_PORT to a free port, the same for all ranks")};
                }
                return ports_of_job(job);
              },
          .all_here = [&launcher](const Variables& from, int size) { return all_ranks_here(launcher, from, size); }};
}

/// Compares PMI's variables with those of a launcher that also speaks PMI. Throws UsageError if they differ: then an outer launcher has set
/// some of them, and a rank that used these could become a world of its own.
PDP_INLINE void check_pmi(const Variables& variable, const Starter& starter) {
  const auto value = [&](const char* name) { return variable(name) != nullptr ? in_quotes(variable(name)) : "not set"; };
  if (variable("PMI_RANK") == nullptr || variable("PMI_SIZE") == nullptr) return;
  if (value("PMI_RANK") == value(starter.rank) && value("PMI_SIZE") == value(starter.size)) return;
  throw UsageError{text("PMI_RANK is ", value("PMI_RANK"), " and PMI_SIZE is ", value("PMI_SIZE"), ", but ", starter.rank, " is ",
                        value(starter.rank), " and ", starter.size, " is ", value(starter.size),
                        "; unset those of the launcher that did not start this process, or set RANK and WORLD_SIZE")};
}

}  // namespace detail

PDP_INLINE std::optional<Starter> launcher_starter(const Variables& variable) {
  const auto pmi_is_innermost = [&] { return variable("MPI_LOCALRANKID") != nullptr || variable("MPI_LOCALNRANKS") != nullptr; };
  for (const LauncherVariables& launcher : launchers_of_ranks) {
    if (variable(launcher.rank) == nullptr) continue;
    if (launcher.speaks_pmi && variable("PMI_RANK") != nullptr && pmi_is_innermost()) return detail::starter_of(pmi_launcher, variable);
    if (launcher.size_may_be_missing && detail::first_set(variable, launcher.size) == nullptr) continue;
    Starter starter = detail::starter_of(launcher, variable);
    if (launcher.speaks_pmi) detail::check_pmi(variable, starter);
    return starter;
  }
  std::optional<Starter> slurm = slurm_starter(variable);
  if (variable("PMI_RANK") == nullptr) return slurm;
  if (!slurm || pmi_is_innermost()) return detail::starter_of(pmi_launcher, variable);
  detail::check_pmi(variable, *slurm);
  return slurm;
}

namespace detail {

/// Returns the variable without which a task of srun cannot find the other ranks (see slurm_starter). For example, a container may get only
/// some of Slurm's variables. Returns null if this process is no task of srun: SLURM_PROCID is also set, to 0, in the batch script and in
/// the shell of salloc.
PDP_INLINE const char* missing_of_slurm(const Variables& variable) {
  const char* task = given(variable, "SLURM_PROCID");
  if (task == nullptr) return nullptr;
  const char* tasks = given(variable, "SLURM_STEP_NUM_TASKS");
  if (std::string_view{task} == "0" && (tasks == nullptr || std::string_view{tasks} == "1")) return nullptr;
  return variable("SLURM_STEP_NODELIST") == nullptr && variable("SLURM_STEP_ID") != nullptr ? "SLURM_STEP_NODELIST" : "SLURM_STEP_ID";
}

}  // namespace detail

PDP_INLINE void refuse_rank_without_size(const Variables& variable) {
  constexpr const char* wish = "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset ";
  for (const LauncherWithoutSize& each : launchers_without_size) {
    const char* rank = detail::given(variable, each.rank);
    if (rank == nullptr || rank == std::to_string(each.alone)) continue;
    throw UsageError{text(each.rank, " is ", in_quotes(rank), ", so ", each.launcher,
                          " seems to have started this process as one of several ranks, but no variable known to pdp gives their "
                          "number; ",
                          wish, each.rank, " if this process is the only one")};
  }
  if (const char* missing = detail::missing_of_slurm(variable)) {
    throw UsageError{text("SLURM_PROCID is ", in_quotes(variable("SLURM_PROCID")),
                          ", so srun seems to have started this process as one of several ranks, but ", missing,
                          variable(missing) == nullptr ? " is not set" : " does not name a step of srun",
                          "; pass all SLURM_* variables on, also into a container, or ", wish,
                          "SLURM_PROCID if this process is the only one")};
  }
}

}  // namespace pdp::launch
