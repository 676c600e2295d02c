#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

using Settings = std::map<std::string, std::string>;

launch::Variables variables(const Settings& settings) {
  return [&](const char* name) -> const char* {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : found->second.c_str();
  };
}
launch::JobPlace place(const Settings& settings) { return launch::JobPlace::from(variables(settings)); }
bool given(const Settings& settings) { return launch::JobPlace::given(variables(settings)); }

const Settings third_of_four{
    {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};

// The variables that srun sets for a task of a step with fewer tasks than the job.
const Settings task_of_slurm{{"SLURM_JOB_ID", "1731344"},
                             {"SLURM_JOB_NODELIST", "node[05-12]"},
                             {"SLURM_NTASKS", "64"},
                             {"SLURM_STEP_ID", "2"},
                             {"SLURM_STEP_NODELIST", "node[07-08],gpu3"},
                             {"SLURM_STEP_NUM_TASKS", "8"},
                             {"SLURM_PROCID", "5"},
                             {"SLURM_LOCALID", "1"}};
// The variables of a batch script of a job with 64 tasks.
const Settings batch_script{{"SLURM_JOB_ID", "1731344"}, {"SLURM_JOB_NODELIST", "node[05-12]"},
                            {"SLURM_NTASKS", "64"},      {"SLURM_NPROCS", "64"},
                            {"SLURM_PROCID", "0"},       {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "0"}};
// The variables of salloc's shell if it runs on the job's first machine.
const Settings interactive_shell{{"SLURM_JOB_ID", "1731344"},
                                 {"SLURM_NTASKS", "64"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_STEP_ID", "4294967290"},
                                 {"SLURM_STEPID", "4294967290"},
                                 {"SLURM_STEP_NODELIST", "node[05]"},
                                 {"SLURM_STEP_NUM_TASKS", "1"}};
const Settings rank_of_open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                {"OMPI_MCA_ess_base_jobid", "2913271809"},
                                {"PMIX_NAMESPACE", "2913271809"}};
const Settings rank_of_intel_mpi{{"PMI_RANK", "1"},        {"PMI_SIZE", "2"},
                                 {"PMI_FD", "9"},          {"MPI_LOCALRANKID", "1"},
                                 {"MPI_LOCALNRANKS", "2"}, {"I_MPI_HYDRA_UUID", "c47e0000-9d8b-cc9e-df02-0600c0a80001"}};

// The variables that torchrun of PyTorch 2.15 sets for the second of two ranks.
const Settings rank_of_torchrun{{"RANK", "1"},
                                {"WORLD_SIZE", "2"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"GROUP_RANK", "0"},
                                {"GROUP_WORLD_SIZE", "1"},
                                {"ROLE_RANK", "1"},
                                {"ROLE_NAME", "default"},
                                {"ROLE_WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "localhost"},
                                {"MASTER_PORT", "35731"},
                                {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                {"TORCHELASTIC_RESTART_COUNT", "0"},
                                {"TORCHELASTIC_RUN_ID", "1719af62-2855-4ff2-a5de-49a4e520448a"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

Settings with(Settings settings, const std::string& name, const std::string& value) {
  settings[name] = value;
  return settings;
}
Settings without(Settings settings, const std::string& name) {
  settings.erase(name);
  return settings;
}
Settings merged(Settings settings, const Settings& others) {
  settings.insert(others.begin(), others.end());
  return settings;
}

}  // namespace

TEST_CASE("JobPlace::from returns a single rank if no variable is set", "[launch][environment]") {
  const launch::JobPlace alone = place({});
  CHECK(alone.rank == 0);
  CHECK(alone.size == 1);
  CHECK(alone.timeout == std::chrono::seconds{60});
  CHECK_FALSE(alone.hosts_store);
}

TEST_CASE("JobPlace::from reads rank, size, master and time limits from the environment", "[launch][environment]") {
  const launch::JobPlace third = place(with(third_of_four, "PDP_TIMEOUT", "2.5"));
  CHECK(third.rank == 2);
  CHECK(third.size == 4);
  CHECK(third.local_rank == 1);
  CHECK(third.master_address == "10.0.0.1");
  CHECK(third.master_port == 29500);
  CHECK(third.timeout == std::chrono::milliseconds{2500});
  CHECK(third.heartbeat == std::chrono::seconds{10});
  CHECK(place(with(third_of_four, "PDP_HEARTBEAT", "1.5")).heartbeat == std::chrono::milliseconds{1500});
  CHECK(place(with(third_of_four, "PDP_HEARTBEAT", "0")).heartbeat == std::chrono::seconds{0});
  CHECK_FALSE(third.deadline);
  CHECK(place(with(third_of_four, "PDP_DEADLINE", "0.5")).deadline == std::chrono::milliseconds{500});
  CHECK_THROWS_WITH(place(with(third_of_four, "PDP_DEADLINE", "0")),
                    Contains("PDP_DEADLINE") && Contains("above 0 and at most 100000000; found '0'"));
  CHECK_FALSE(third.hosts_store);
  CHECK(place(with(third_of_four, "RANK", "0")).hosts_store);
  CHECK_FALSE(place(with(with(third_of_four, "RANK", "0"), "PDP_STORE", "launcher")).hosts_store);
  CHECK(place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size == 1);
}

TEST_CASE("JobPlace::from rejects missing, malformed or contradictory variables and shows their values", "[launch][environment]") {
  struct Case {
    Settings settings;
    std::string first, second;
  };
  const auto [settings, first, second] = GENERATE(values<Case>({
      {without(third_of_four, "WORLD_SIZE"), "RANK is '2'", "WORLD_SIZE is not"},
      {without(third_of_four, "RANK"), "WORLD_SIZE is '4'", "RANK is not"},
      {{{"LOCAL_RANK", "0"}}, "LOCAL_RANK is set", "RANK and WORLD_SIZE are not"},
      {{{"MASTER_ADDR", "a"}}, "MASTER_ADDR is set", "RANK and WORLD_SIZE are not"},
      {with(third_of_four, "RANK", "4"), "RANK is 4", "WORLD_SIZE is 4"},
      {with(third_of_four, "RANK", "-1"), "RANK must be", "-1"},
      {with(third_of_four, "RANK", "two"), "RANK must be a number", "'two'"},
      {with(third_of_four, "RANK", "2x"), "RANK must be a number", "'2x'"},
      {with(third_of_four, "RANK", ""), "RANK must be a number", "''"},
      {with(third_of_four, "RANK", "99999999999"), "RANK must be", "99999999999"},
      {with(third_of_four, "WORLD_SIZE", "0"), "WORLD_SIZE must be", "0"},
      {with(third_of_four, "LOCAL_RANK", "4"), "LOCAL_RANK is 4", "WORLD_SIZE is 4"},
      {with(third_of_four, "LOCAL_RANK", "-1"), "LOCAL_RANK must be", "-1"},
      {without(third_of_four, "MASTER_ADDR"), "WORLD_SIZE is 4", "MASTER_ADDR is not set"},
      {without(third_of_four, "MASTER_PORT"), "WORLD_SIZE is 4", "MASTER_PORT is not set"},
      {with(third_of_four, "MASTER_PORT", "0"), "MASTER_PORT must be", "0"},
      {with(third_of_four, "MASTER_PORT", "65536"), "MASTER_PORT must be", "65536"},
      {with(third_of_four, "PDP_TIMEOUT", "0"), "PDP_TIMEOUT", "above 0"},
      {with(third_of_four, "PDP_TIMEOUT", "-3"), "PDP_TIMEOUT", "-3"},
      {with(third_of_four, "PDP_TIMEOUT", "soon"), "PDP_TIMEOUT", "a number above 0 and at most 100000000; found 'soon'"},
      {with(third_of_four, "PDP_TIMEOUT", "1e9"), "PDP_TIMEOUT", "a number above 0 and at most 100000000; found '1e9'"},
      {with(third_of_four, "PDP_DEADLINE", "x"), "PDP_DEADLINE", "a number above 0 and at most 100000000; found 'x'"},
      {with(third_of_four, "PDP_TIMEOUT", "nan"), "PDP_TIMEOUT", "nan"},
      {with(third_of_four, "PDP_HEARTBEAT", "0.5"), "PDP_HEARTBEAT", "from 1 to 100000000, or 0 for no limit; found '0.5'"},
      {with(third_of_four, "PDP_HEARTBEAT", "-1"), "PDP_HEARTBEAT", "-1"},
      {with(third_of_four, "PDP_HEARTBEAT", "often"), "PDP_HEARTBEAT", "'often'"},
      {with(third_of_four, "PDP_STORE", "here"), "PDP_STORE", "'here'"},
      {with(third_of_four, "PDP_RENDEZVOUS", "10.0.0.1:29500"), "PDP_RENDEZVOUS", "'10.0.0.1:29500'"},
      {{{"PDP_RENDEZVOUS", "tcp://a:1"}}, "PDP_RENDEZVOUS is set", "RANK and WORLD_SIZE are not"},
  }));
  try {
    place(settings);
    FAIL("nothing was thrown");
  } catch (const pdp::UsageError& error) {
    CHECK_THAT(error.what(), Contains(first) && Contains(second));
  }
}

TEST_CASE("PDP_RENDEZVOUS overrides MASTER_ADDR, MASTER_PORT and the launcher's own address", "[launch][environment]") {
  const Settings nowhere = without(without(third_of_four, "MASTER_ADDR"), "MASTER_PORT");
  for (const Settings& settings : {third_of_four, nowhere, task_of_slurm}) {
    const launch::JobPlace at_place = place(with(settings, "PDP_RENDEZVOUS", "tcp://[fd00::7]:4711"));
    CHECK(at_place.master_address == "fd00::7");
    CHECK(at_place.master_port == 4711);
    CHECK_FALSE(at_place.master_by_name);
    CHECK_FALSE(at_place.hosts_store);
    CHECK(at_place.folder.empty());
    const launch::JobPlace in_folder = place(with(settings, "PDP_RENDEZVOUS", "file:///shared/job"));
    CHECK(in_folder.folder == "/shared/job");
    CHECK(in_folder.master_address.empty());
    CHECK(in_folder.rank == at_place.rank);
    CHECK(in_folder.size == at_place.size);
  }
  CHECK(place(with(third_of_four, "PDP_RENDEZVOUS", "env://")).master_address == "10.0.0.1");
  CHECK_THROWS_WITH(place(with(nowhere, "PDP_RENDEZVOUS", "env://")), Contains("MASTER_ADDR is not set"));
  CHECK(place(with(with(nowhere, "RANK", "0"), "PDP_RENDEZVOUS", "tcp://a:1")).hosts_store);
  CHECK_FALSE(place(with(with(nowhere, "RANK", "0"), "PDP_RENDEZVOUS", "file:///a")).hosts_store);
}

TEST_CASE("The URL of --rendezvous overrides PDP_RENDEZVOUS", "[launch][environment]") {
  const Settings settings = with(third_of_four, "PDP_RENDEZVOUS", "file:///shared/job");
  const launch::JobPlace third = launch::JobPlace::from(variables(settings), "tcp://b:2");
  CHECK(third.folder.empty());
  CHECK(third.master_address == "b");
  CHECK(launch::JobPlace::from(variables(settings), "env://").master_address == "10.0.0.1");
  CHECK_THROWS_WITH(launch::JobPlace::from(variables(settings), "tcp://b"), StartsWith("--rendezvous is 'tcp://b'"));
  CHECK_THROWS_WITH(launch::JobPlace::from(variables({}), "tcp://b:2"),
                    StartsWith("--rendezvous is given, but RANK and WORLD_SIZE are not"));
}

TEST_CASE("A task of a Slurm step is a rank of that step, not of the whole job", "[launch][environment]") {
  const launch::JobPlace sixth = place(task_of_slurm);
  CHECK(sixth.rank == 5);
  CHECK(sixth.size == 8);
  CHECK(sixth.local_rank == 1);
  CHECK(sixth.master_address == "node07");
  CHECK(sixth.master_by_name);
  CHECK_FALSE(place(with(task_of_slurm, "MASTER_ADDR", "node07")).master_by_name);
  CHECK(sixth.master_port == 12288 + 1731344 % 320 * 64 + 2);
  CHECK_FALSE(sixth.hosts_store);
  CHECK(given(task_of_slurm));
  for (const char* reserved : {"12017", "12017-12018", "12017,12020"})
    CHECK(place(with(task_of_slurm, "SLURM_STEP_RESV_PORTS", reserved)).master_port == 12017);
  CHECK_THROWS_AS(place(with(task_of_slurm, "SLURM_STEP_RESV_PORTS", "-12018")), pdp::UsageError);
  CHECK(place(with(task_of_slurm, "SLURM_PROCID", "0")).hosts_store);

  const Settings old = without(with(task_of_slurm, "SLURM_NTASKS", "8"), "SLURM_STEP_NUM_TASKS");
  CHECK(place(old).size == 8);
  CHECK(given(old));
}

TEST_CASE("A program in a Slurm job without srun is one rank, which may start others", "[launch][environment]") {
  const Settings login_shell = without(without(batch_script, "SLURM_PROCID"), "SLURM_LOCALID");
  const auto settings = GENERATE_COPY(values<Settings>({
      batch_script,
      interactive_shell,
      login_shell,
      with(batch_script, "SLURM_STEP_ID", "4294967291"),
      merged(batch_script, {{"SLURM_STEP_ID", "4294967294"}, {"SLURM_STEP_NODELIST", "node05"}}),
      merged(interactive_shell, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}),
      // A batch script submitted from the shell of srun --pty.
      merged(batch_script, {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "node01"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
  }));
  CHECK(place(settings).size == 1);
  CHECK(place(settings).rank == 0);
  CHECK_FALSE(given(settings));
}

TEST_CASE("A process that its launcher started alone is one rank, which may start others", "[launch][environment]") {
  Settings step = with(with(task_of_slurm, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0");
  step["SLURM_LOCALID"] = "0";
  const Settings open_mpi{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  const Settings pmi{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  for (const Settings& settings : {step, open_mpi, pmi}) {
    CHECK(place(settings).size == 1);
    CHECK_FALSE(given(settings));
    const Settings started = merged(third_of_four, settings);  // as a rank that the program itself starts
    CHECK(given(started));
    CHECK(place(started).rank == 2);
    CHECK(place(started).size == 4);
    CHECK(place(started).master_port == 29500);
  }
}

TEST_CASE("Concurrent Slurm steps derive distinct ports below the ephemeral ports", "[launch][environment]") {
  std::set<int> ports;
  for (int job = 5000; job < 5320; ++job)
    for (int step = 30; step < 94; ++step)
      ports.insert(
          place(with(with(task_of_slurm, "SLURM_JOB_ID", std::to_string(job)), "SLURM_STEP_ID", std::to_string(step))).master_port);
  CHECK(ports.size() == 320 * 64);
  CHECK(*ports.begin() == 12288);
  CHECK(*ports.rbegin() == 32767);
  CHECK(place(with(task_of_slurm, "SLURM_JOB_ID", "4294967295")).master_port >= 12288);
}

TEST_CASE("Ranks of Open MPI on one machine need only its own variables", "[launch][environment]") {
  const launch::JobPlace last = place(rank_of_open_mpi);
  CHECK(last.rank == 3);
  CHECK(last.size == 4);
  CHECK(last.local_rank == 2);
  CHECK(last.master_address == "127.0.0.1");
  CHECK(last.master_port >= 12288);
  CHECK(last.master_port <= 32767);
  CHECK(given(rank_of_open_mpi));
  CHECK(place(with(rank_of_open_mpi, "OMPI_COMM_WORLD_RANK", "0")).hosts_store);
  CHECK(place(with(rank_of_open_mpi, "OMPI_COMM_WORLD_RANK", "1")).master_port == last.master_port);
  CHECK(place(with(rank_of_open_mpi, "OMPI_MCA_ess_base_jobid", "2913271810")).master_port != last.master_port);

  const Settings fifth_version = without(with(rank_of_open_mpi, "PMIX_NAMESPACE", "prterun-node05-4711@1"), "OMPI_MCA_ess_base_jobid");
  CHECK(place(fifth_version).master_port >= 12288);
  CHECK(place(fifth_version).master_port != place(with(fifth_version, "PMIX_NAMESPACE", "prterun-node05-4712@1")).master_port);
}

TEST_CASE("Ranks of Intel MPI on one machine need only its own variables, those of MPICH also MASTER_PORT", "[launch][environment]") {
  const launch::JobPlace second = place(rank_of_intel_mpi);
  CHECK(second.rank == 1);
  CHECK(second.size == 2);
  CHECK(second.local_rank == 1);
  CHECK(second.master_address == "127.0.0.1");
  CHECK(second.master_port >= 12288);
  CHECK(given(rank_of_intel_mpi));

  const Settings mpich = without(rank_of_intel_mpi, "I_MPI_HYDRA_UUID");
  CHECK(given(mpich));
  CHECK_THROWS_WITH(place(mpich), Contains("PMI_SIZE is 2") && Contains("set MASTER_PORT"));
  CHECK_THROWS_WITH(place(with(mpich, "PMIX_NAMESPACE", "slurm.pmix.7.0")), Contains("set MASTER_PORT"));
  CHECK(place(with(mpich, "MASTER_PORT", "4000")).master_port == 4000);
}

TEST_CASE("Ranks of torchrun derive ports from MASTER_PORT if its agent listens there", "[launch][environment]") {
  const auto ports = [](const Settings& settings) {
    const launch::JobPlace found = place(settings);
    std::vector<std::uint16_t> all{found.master_port};
    all.insert(all.end(), found.more_ports.begin(), found.more_ports.end());
    return all;
  };
  const std::vector<std::uint16_t> derived = ports(rank_of_torchrun);
  CHECK(derived.size() == 8);
  for (const std::uint16_t port : derived) CHECK((port >= 12288 && port <= 32767));
  CHECK(place(rank_of_torchrun).master_address == "localhost");
  for (const auto& [name, value] : Settings{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"TORCHELASTIC_RESTART_COUNT", "1"}, {"GROUP_RANK", "1"}})
    CHECK(ports(with(rank_of_torchrun, name, value)) == derived);
  CHECK(ports(with(rank_of_torchrun, "MASTER_PORT", "35732")) != derived);
  CHECK(ports(with(rank_of_torchrun, "TORCHELASTIC_RUN_ID", "none")) != derived);

  const std::vector<std::uint16_t> given_port{35731};
  CHECK(ports(with(rank_of_torchrun, "TORCHELASTIC_USE_AGENT_STORE", "False")) == given_port);
  CHECK(ports(without(rank_of_torchrun, "TORCHELASTIC_USE_AGENT_STORE")) == given_port);
  CHECK(ports(with(rank_of_torchrun, "PDP_STORE", "launcher")) == given_port);  // a rank that pdp's launcher started within torchrun
  CHECK(ports(with(rank_of_torchrun, "PDP_RENDEZVOUS", "tcp://a:7")) == std::vector<std::uint16_t>{7});
}

TEST_CASE("JobPlace::from reads rank, size and local rank from the variables of each known launcher", "[launch][environment]") {
  struct Case {
    Settings settings;
    std::optional<int> local_rank;
    bool port_known;  // derived from the variables if MASTER_PORT is not set
  };
  const auto [settings, local_rank, port_known] = GENERATE(values<Case>({
      {{{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "3"}, {"MV2_COMM_WORLD_LOCAL_RANK", "0"}, {"MV2_COMM_WORLD_LOCAL_SIZE", "3"}},
       0,
       false},
      {{{"MVP_COMM_WORLD_RANK", "1"}, {"MVP_COMM_WORLD_SIZE", "3"}, {"MVP_COMM_WORLD_LOCAL_RANK", "2"}, {"MVP_COMM_WORLD_LOCAL_SIZE", "3"}},
       2,
       false},
      {{{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "3"}, {"HOROVOD_LOCAL_RANK", "1"}, {"HOROVOD_LOCAL_SIZE", "3"}}, 1, false},
      {{{"MPI_RANKID", "1"}, {"MPI_NRANKS", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}}, 1, false},
      {{{"PALS_RANKID", "1"},
        {"PALS_LOCAL_RANKID", "1"},
        {"PALS_APID", "7c1e-44"},
        {"PMI_RANK", "1"},
        {"PMI_SIZE", "3"},
        {"PMI_LOCAL_RANK", "1"},
        {"PMI_LOCAL_SIZE", "3"}},
       1,
       true},
      {{{"JSM_NAMESPACE_RANK", "1"},
        {"JSM_NAMESPACE_SIZE", "3"},
        {"JSM_NAMESPACE_LOCAL_RANK", "1"},
        {"JSM_NAMESPACE_LOCAL_SIZE", "3"},
        {"PMIX_RANK", "1"},
        {"PMIX_NAMESPACE", "12"}},
       1,
       true},
      {{{"FLUX_TASK_RANK", "1"},
        {"FLUX_JOB_SIZE", "3"},
        {"FLUX_TASK_LOCAL_ID", "1"},
        {"FLUX_JOB_ID", "f2hVnY"},
        {"FLUX_JOB_NNODES", "1"},
        {"PMI_RANK", "1"},
        {"PMI_SIZE", "3"}},
       1,
       true},
  }));
  CHECK(given(settings));
  const launch::JobPlace with_port = place(with(settings, "MASTER_PORT", "4711"));
  CHECK(with_port.rank == 1);
  CHECK(with_port.size == 3);
  CHECK(with_port.local_rank == local_rank);
  CHECK(with_port.master_address == "127.0.0.1");
  CHECK(with_port.master_port == 4711);
  if (port_known)
    CHECK(place(settings).master_port >= 12288);
  else
    CHECK_THROWS_WITH(place(settings), Contains("set MASTER_PORT"));
}

TEST_CASE("MASTER_ADDR is required if the launcher does not state that all ranks are on one host", "[launch][environment]") {
  const Settings flux{{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "3"}, {"FLUX_JOB_ID", "f2"}, {"FLUX_JOB_NNODES", "2"}};
  CHECK_THROWS_WITH(place(flux), Contains("FLUX_JOB_NNODES is '2'") && Contains("set MASTER_ADDR"));
  CHECK(place(with(flux, "MASTER_ADDR", "n0")).master_port >= 12288);
  const Settings poe{{"MP_CHILD", "1"}, {"MP_PROCS", "3"}};
  CHECK_THROWS_WITH(place(poe), Contains("MP_PROCS is 3") && Contains("set MASTER_ADDR"));
  CHECK(place(merged(poe, {{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "7"}})).rank == 1);
}

TEST_CASE("JobPlace::from rejects a launcher that sets a rank but no size, and names its variable", "[launch][environment]") {
  for (const char* name : {"PMIX_RANK", "ALPS_APP_PE", "PMI_ID", "PALS_RANKID", "LSF_PM_TASKID", "PBS_NODENUM", "PBS_VNODENUM",
                           "PBS_TASKNUM", "MPIRUN_RANK", "AWS_BATCH_JOB_NODE_INDEX", "VC_TASK_INDEX", "JOB_COMPLETION_INDEX"}) {
    CHECK_THROWS_AS(place({{name, "2"}}), pdp::UsageError);
    CHECK_THROWS_WITH(place({{name, "2"}}), StartsWith(pdp::text(name, " is '2'")) && Contains("set RANK, WORLD_SIZE, MASTER_ADDR"));
    CHECK(place(with(third_of_four, name, "3")).rank == 2);
  }
  for (const char* name : {"PMIX_RANK", "MPIRUN_RANK"}) CHECK_THROWS_AS(place({{name, "0"}}), pdp::UsageError);
  // The first machine of a job may be its only one.
  for (const char* name : {"AWS_BATCH_JOB_NODE_INDEX", "VC_TASK_INDEX", "JOB_COMPLETION_INDEX"}) CHECK(place({{name, "0"}}).size == 1);
  // The variables of a PBS job script.
  CHECK(place({{"PBS_NODENUM", "0"}, {"PBS_VNODENUM", "0"}, {"PBS_TASKNUM", "1"}}).size == 1);
  CHECK(place({{"PMIX_RANK", ""}}).size == 1);
  // Another launcher's variables give the size.
  CHECK(place(with(rank_of_open_mpi, "PMIX_RANK", "3")).size == 4);
  CHECK(place(with(task_of_slurm, "PMIX_RANK", "5")).size == 8);
  // Over MPI, which needs no store, MPI itself knows the ranks.
  CHECK(launch::JobPlace::from(variables({{"PMIX_RANK", "2"}}), {}, /*has_store*/ false).size == 1);
}

TEST_CASE("JobPlace::from rejects a Slurm task with missing step variables unless it is the only task", "[launch][environment]") {
  const Settings in_container{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}};
  CHECK_THROWS_AS(place(in_container), pdp::UsageError);
  CHECK_THROWS_WITH(place(in_container), StartsWith("SLURM_PROCID is '1'") && Contains("SLURM_STEP_ID is not set") &&
                                             Contains("into a container") && Contains("set RANK, WORLD_SIZE, MASTER_ADDR"));
  CHECK_THROWS_WITH(place(without(task_of_slurm, "SLURM_STEP_NODELIST")), Contains("SLURM_STEP_NODELIST is not set"));
  CHECK_THROWS_AS(place({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}), pdp::UsageError);
  CHECK(place(with(with(in_container, "RANK", "0"), "WORLD_SIZE", "1")).size == 1);
  CHECK(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).size == 1);
  CHECK(place({{"SLURM_PROCID", ""}}).size == 1);
  CHECK(place(with(batch_script, "SLURM_STEP_NUM_TASKS", "1")).size == 1);
  for (const Settings& alone : {batch_script, interactive_shell}) CHECK(place(alone).size == 1);
}

TEST_CASE("Ranks of NEC MPI need MASTER_ADDR, since its mpirun sets only rank and size", "[launch][environment]") {
  const Settings nec{{"MPIRANK", "1"}, {"MPISIZE", "2"}};
  CHECK(given(nec));
  CHECK_THROWS_WITH(place(nec), Contains("MPISIZE is 2") && Contains("set MASTER_ADDR"));
  CHECK(place(merged(nec, {{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "7"}})).rank == 1);
  CHECK(place({{"MPIRANK", "0"}, {"MPISIZE", "1"}}).size == 1);
}

TEST_CASE("A heterogeneous Slurm step is one job with the ranks of all its parts", "[launch][environment]") {
  const Settings third{{"SLURM_JOB_ID", "18"},        {"SLURM_NTASKS", "4"},         {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "b0"},
                       {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_PROCID", "2"},  {"SLURM_LOCALID", "0"}};
  CHECK(place(third).rank == 2);
  CHECK(place(third).size == 4);
  const Settings of_job{{"SLURM_HET_SIZE", "2"},
                        {"SLURM_JOB_ID_HET_GROUP_0", "17"},
                        {"SLURM_JOB_ID_HET_GROUP_1", "18"},
                        {"SLURM_JOB_NODELIST_HET_GROUP_0", "a[0-1]"},
                        {"SLURM_JOB_NODELIST_HET_GROUP_1", "b0"}};
  const Settings first =
      merged(with(with(with(third, "SLURM_PROCID", "0"), "SLURM_JOB_ID", "17"), "SLURM_STEP_NODELIST", "a[0-1]"), of_job);
  const launch::JobPlace here = place(merged(third, of_job)), there = place(first);
  CHECK(here.size == 4);
  CHECK(there.size == 4);
  CHECK(here.master_address == "a0");
  CHECK(there.master_address == "a0");
  CHECK(here.master_port == there.master_port);
  CHECK(here.more_ports == there.more_ports);
  // Slurm 22.05 counts the whole step in all variables.
  CHECK(place(with(first, "SLURM_STEP_NUM_TASKS", "4")).size == 4);
  // A step that runs in one part only.
  CHECK(place(with(with(first, "SLURM_NTASKS", "2"), "SLURM_STEP_NUM_TASKS", "2")).size == 2);
  CHECK_THROWS_WITH(place(with(third, "SLURM_PROCID", "4")), Contains("SLURM_PROCID is 4") && Contains("SLURM_NTASKS is 4"));
}

TEST_CASE("Error messages escape control characters from the environment", "[launch][environment]") {
  const auto message = [](const Settings& settings) -> std::string {
    try {
      place(settings);
    } catch (const pdp::UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  CHECK_THAT(message(with(third_of_four, "RANK", "0\r")), Contains("found '0\\r'"));
  CHECK_THAT(message(with(third_of_four, "RANK", "0\n")), Contains("found '0\\n'"));
  CHECK_THAT(message(with(third_of_four, "PDP_HEARTBEAT", "\x1b[2J")), Contains("found '\\x1b[2J'"));
  CHECK_THAT(message(without(with(third_of_four, "RANK", "\x07"), "WORLD_SIZE")), Contains("RANK is '\\x07'"));
  CHECK_THAT(message(with(third_of_four, "MASTER_ADDR", "10.0.0.1\r")), Contains("MASTER_ADDR is '10.0.0.1\\r'"));
  CHECK_THAT(message({{"PMIX_RANK", "\x1b"}}), Contains("PMIX_RANK is '\\x1b'"));
}

TEST_CASE("Error messages have one line even if variables contain line breaks", "[launch][environment]") {
  const std::string forged = "0\nrank 3: all is well";
  const Settings pals{{"PALS_RANKID", forged}, {"PALS_SIZE", "3"}, {"PMI_RANK", forged + '4'}, {"PMI_SIZE", forged}};
  const auto settings = GENERATE_COPY(values<Settings>({
      without(with(third_of_four, "RANK", forged), "WORLD_SIZE"),
      without(with(third_of_four, "WORLD_SIZE", forged), "RANK"),
      with(third_of_four, "RANK", forged),
      with(third_of_four, "MASTER_ADDR", forged),
      without(with(third_of_four, "MASTER_ADDR", forged), "MASTER_PORT"),
      with(third_of_four, "PDP_TIMEOUT", forged),
      with(third_of_four, "PDP_HEARTBEAT", forged),
      with(third_of_four, "PDP_DEADLINE", forged),
      with(third_of_four, "PDP_STORE", forged),
      with(third_of_four, "PDP_RENDEZVOUS", forged),
      with(rank_of_open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", forged),
      {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "3"}, {"FLUX_JOB_ID", "f2"}, {"FLUX_JOB_NNODES", forged}},
      {{"PMIX_RANK", forged}},
      {{"SLURM_PROCID", forged}},
      with(task_of_slurm, "SLURM_STEP_NODELIST", forged),
      with(task_of_slurm, "SLURM_STEP_ID", forged),
      merged(task_of_slurm, {{"PMI_RANK", forged}, {"PMI_SIZE", forged}}),
      pals,
  }));
  try {
    place(settings);
    FAIL("nothing was thrown");
  } catch (const pdp::UsageError& error) {
    INFO(error.what());
    CHECK(std::string{error.what()}.find('\n') == std::string::npos);
  }
}

TEST_CASE("The innermost launcher determines rank and size if launchers are nested", "[launch][environment]") {
  SECTION("mpirun within a Slurm step") {
    CHECK(place(merged(rank_of_open_mpi, task_of_slurm)).rank == 3);
    CHECK(place(merged(rank_of_open_mpi, task_of_slurm)).size == 4);
    CHECK(place(merged(rank_of_intel_mpi, task_of_slurm)).size == 2);
    CHECK(place(merged(rank_of_open_mpi, batch_script)).size == 4);
    CHECK(place(merged(rank_of_open_mpi, merged(task_of_slurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}))).size == 4);
  }
  SECTION("srun that sets PMI's variables itself") {
    const Settings task = merged(task_of_slurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_FD", "9"}});
    CHECK(place(task).size == 8);
    CHECK(place(task).master_address == "node07");
    CHECK(given(task));
  }
  SECTION("PMI variables that contradict those of the Slurm step") {
    const Settings task = merged(task_of_slurm, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}});
    CHECK_THROWS_AS(place(task), pdp::UsageError);
    CHECK_THROWS_WITH(place(task), Contains("PMI_SIZE is '1'") && Contains("SLURM_STEP_NUM_TASKS is '8'") && Contains("set RANK"));
  }
  SECTION("RANK and WORLD_SIZE, which override every launcher") {
    const Settings all = merged(third_of_four, merged(rank_of_open_mpi, merged(rank_of_intel_mpi, task_of_slurm)));
    CHECK(place(all).rank == 2);
    CHECK(place(all).local_rank == 1);
    CHECK(place(all).master_address == "10.0.0.1");
    CHECK_THROWS_WITH(place(without(all, "MASTER_ADDR")), Contains("MASTER_ADDR is not set"));
    CHECK_THROWS_WITH(place(without(all, "RANK")), Contains("WORLD_SIZE is '4'"));
  }
}

TEST_CASE("MASTER_ADDR, MASTER_PORT and LOCAL_RANK override the launcher's variables", "[launch][environment]") {
  const auto settings = GENERATE(values<Settings>({task_of_slurm, rank_of_open_mpi, rank_of_intel_mpi}));
  const launch::JobPlace own = place(merged(settings, {{"MASTER_ADDR", "10.0.0.9"}, {"MASTER_PORT", "4000"}, {"LOCAL_RANK", "0"}}));
  CHECK(own.rank == place(settings).rank);
  CHECK(own.size == place(settings).size);
  CHECK(own.local_rank == 0);
  CHECK(own.master_address == "10.0.0.9");
  CHECK(own.master_port == 4000);
  CHECK(place(with(settings, "MASTER_ADDR", "")).master_address == place(settings).master_address);
  CHECK(place(with(settings, "PDP_TIMEOUT", "5")).timeout == std::chrono::seconds{5});
}

TEST_CASE("JobPlace::from rejects incomplete or contradictory variables of a launcher and names them", "[launch][environment]") {
  struct Case {
    Settings settings;
    std::string first, second;
  };
  const Settings several_machines = with(rank_of_open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  const auto [settings, first, second] = GENERATE_COPY(values<Case>({
      {with(with(task_of_slurm, "SLURM_PROCID", "8"), "SLURM_NTASKS", "8"), "SLURM_PROCID is 8", "SLURM_STEP_NUM_TASKS is 8"},
      {with(task_of_slurm, "SLURM_PROCID", "x"), "SLURM_PROCID must be a number", "'x'"},
      {with(task_of_slurm, "SLURM_LOCALID", "8"), "SLURM_LOCALID is 8", "SLURM_STEP_NUM_TASKS is 8"},
      {with(task_of_slurm, "SLURM_STEP_ID", "batch"), "SLURM_STEP_ID must be a number", "'batch'"},
      {with(task_of_slurm, "SLURM_STEP_NODELIST", ""), "SLURM_STEP_NODELIST: ", "set MASTER_ADDR"},
      {with(task_of_slurm, "SLURM_STEP_NODELIST", "node[7"), "SLURM_STEP_NODELIST: ", "found its end"},
      {with(task_of_slurm, "SLURM_JOB_ID", "7_3"), "SLURM_JOB_ID must be a number", "'7_3'"},
      {without(task_of_slurm, "SLURM_JOB_ID"), "SLURM_JOB_ID, from which the port of the job's store is derived, is not",
       "set MASTER_PORT"},
      {without(without(task_of_slurm, "SLURM_STEP_NUM_TASKS"), "SLURM_NTASKS"), "SLURM_PROCID is '5'", "SLURM_NTASKS is not"},
      {without(rank_of_open_mpi, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_RANK is '3'", "OMPI_COMM_WORLD_SIZE is not"},
      {with(rank_of_open_mpi, "OMPI_COMM_WORLD_RANK", "4"), "OMPI_COMM_WORLD_RANK is 4", "OMPI_COMM_WORLD_SIZE is 4"},
      {several_machines, "OMPI_COMM_WORLD_LOCAL_SIZE is '2'", "set MASTER_ADDR"},
      {without(rank_of_open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE"), "OMPI_COMM_WORLD_LOCAL_SIZE is not set", "set MASTER_ADDR"},
      {with(rank_of_open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "5"), "OMPI_COMM_WORLD_LOCAL_SIZE must be from 1 to 4", "5"},
      {without(without(rank_of_open_mpi, "OMPI_MCA_ess_base_jobid"), "PMIX_NAMESPACE"), "OMPI_COMM_WORLD_SIZE is 4", "set MASTER_PORT"},
      {with(rank_of_open_mpi, "MASTER_PORT", "65536"), "MASTER_PORT must be", "65536"},
      {with(rank_of_open_mpi, "LOCAL_RANK", "4"), "LOCAL_RANK is 4", "OMPI_COMM_WORLD_SIZE is 4"},
      {without(rank_of_intel_mpi, "PMI_SIZE"), "PMI_RANK is '1'", "PMI_SIZE is not"},
      {with(rank_of_intel_mpi, "PMI_SIZE", "4"), "MPI_LOCALNRANKS is '2'", "set MASTER_ADDR"},
      {without(rank_of_intel_mpi, "MPI_LOCALNRANKS"), "MPI_LOCALNRANKS is not set", "set MASTER_ADDR"},
  }));
  try {
    place(settings);
    FAIL("nothing was thrown");
  } catch (const pdp::UsageError& error) {
    CHECK_THAT(error.what(), Contains(first) && Contains(second));
  }
}
