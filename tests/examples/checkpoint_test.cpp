#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/core/error.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;

namespace {

/// Returns the step of the newest checkpoint; -1 if there is none.
std::int64_t newest(const std::string& folder) {
  const auto all = pdp::checkpoint::checkpoints_in(folder);
  return all.empty() ? -1 : all.back().step;
}

/// Starts a program that trains for long, and sends a signal to its launcher when it has saved a new checkpoint.
Ended stopped_by(int signal, const std::string& folder, const std::string& program, std::vector<std::string> arguments) {
  const std::int64_t before = newest(folder);
  arguments.insert(arguments.end(), {"--checkpoint", folder, "--checkpoint-every", "1"});
  launch_test::Job job{arguments, {}, PDP_TEST_EXAMPLES "/" + program};
  for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
       newest(folder) == before && launch_test::Clock::now() < until;)
    job.read();
  job.signal(signal);
  const int code = job.end();
  return {code, job.out(), job.err()};
}

}  // namespace

TEST_CASE("A program that is stopped by a signal to its launcher ends with 75, and continues when it is started again",
          "[examples][stop]") {
  const Folder folder;
  const int signal = GENERATE(SIGTERM, SIGUSR1);
  const std::string program = GENERATE("mnist_ddp", "toy_mlp");
  const std::vector<std::string> arguments = program == "toy_mlp" ? std::vector<std::string>{"--strategy", "zero", "--niters", "100000000"}
                                                                  : std::vector<std::string>{"--ranks", "2", "--epochs", "100000"};
  const Ended ended = stopped_by(signal, folder / "run", program, arguments);
  CAPTURE(program, ended.err);
  CHECK(ended.code == 75);
  CHECK_THAT(ended.err, StartsWith("stopped on request after step ") && Contains("start the program again to continue"));
  const std::int64_t before = newest(folder / "run");
  const Ended again = stopped_by(signal, folder / "run", program, arguments);
  CHECK(again.code == 75);
  CHECK(newest(folder / "run") > before);
}

TEST_CASE("Ranks that get a signal while they wait for another rank stop after their first step", "[examples][stop]") {
  const Folder folder;
  const std::uint16_t port = launch_test::free_port();
  const std::vector<std::string> arguments{"--epochs", "100000", "--checkpoint", folder / "run"};
  launch_test::Job first{arguments, launch_test::rank_of(0, 2, port), PDP_TEST_EXAMPLES "/mnist_ddp"};
  const auto has_blocked_signals = [&] {
    const std::string status = launch_test::contents(pdp::text("/proc/", first.launcher(), "/status"));
    const std::size_t at = status.find("SigBlk:");
    if (at == std::string::npos) return false;
    const auto blocked = std::stoull(status.substr(at + 7), nullptr, 16);
    const auto has = [blocked](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
    return has(SIGTERM) && !has(SIGINT);  // the rank blocks all signals for a moment, when it starts a thread
  };
  for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
       !has_blocked_signals() && launch_test::Clock::now() < until;)
    first.read();
  first.signal(SIGTERM);
  launch_test::Job second{arguments, launch_test::rank_of(1, 2, port), PDP_TEST_EXAMPLES "/mnist_ddp"};
  CHECK(first.end() == 75);
  CHECK(second.end() == 75);
  CHECK_THAT(first.err(), StartsWith("stopped on request after step 1, with a checkpoint"));
  CHECK(newest(folder / "run") == 1);
}

TEST_CASE("A launcher passes a signal on to ranks that have only just started", "[examples][stop]") {
  const Folder folder;
  launch_test::Job job{{"--ranks", "2", "--epochs", "100000", "--checkpoint", folder / "run"}, {}, PDP_TEST_EXAMPLES "/mnist_ddp"};
  for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
       job.processes().size() < 2 && launch_test::Clock::now() < until;) {
  }
  job.signal(SIGUSR1);
  CHECK(job.end() == 75);
  CHECK(newest(folder / "run") >= 1);
}

TEST_CASE("A program stops when the time of --stop-after or PDP_STOP_AFTER is over, and then continues", "[examples][stop]") {
  const Folder folder;
  const bool by_variable = GENERATE(false, true);
  std::vector<std::string> arguments{"--ranks", "2", "--seed", "3", "--checkpoint", folder / "run", "--epochs", "1000000"};
  if (!by_variable) arguments.insert(arguments.end(), {"--stop-after", "1"});
  std::vector<launch_test::Variable> variables;
  if (by_variable) variables.emplace_back("PDP_STOP_AFTER", "00:01");
  CHECK(examples_test::run("mnist_ddp", arguments, variables).code == 75);
  const auto steps = newest(folder / "run");
  constexpr std::int64_t of_epoch = 36;  // 9,000 samples in batches of 256
  const std::int64_t epochs = steps / of_epoch + 1;
  const Ended ended =
      examples_test::run("mnist_ddp", {"--ranks", "2", "--seed", "3", "--checkpoint", folder / "run", "--epochs", std::to_string(epochs)});
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, StartsWith(pdp::text("### Epoch ", epochs - 1, " ||")));
  CHECK(newest(folder / "run") == epochs * of_epoch);
}

TEST_CASE("A program with --restarts continues from its newest checkpoint after a rank was killed", "[examples][stop]") {
  const Folder folder;
  launch_test::Job job{
      {"--ranks", "2", "--epochs", "1000000", "--restarts", "2", "--checkpoint", folder / "run", "--checkpoint-every", "1"},
      {},
      PDP_TEST_EXAMPLES "/mnist_ddp"};
  const auto wait_for_step_above = [&](std::int64_t step) {
    for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
         newest(folder / "run") <= step && launch_test::Clock::now() < until;)
      job.read();
  };
  for (int kill = 1; kill <= 2; ++kill) {
    wait_for_step_above(newest(folder / "run"));
    const auto victim = examples_test::process_of(job, kill % 2);
    REQUIRE(victim.has_value());
    const std::int64_t before = newest(folder / "run");
    ::kill(*victim, SIGKILL);
    const std::string words = pdp::text("the ranks start again (restart ", kill, " of 2)\n");
    for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
         job.err().find(words) == std::string::npos && launch_test::Clock::now() < until;)
      job.read();
    wait_for_step_above(before + 5);
  }
  CHECK_THAT(job.err(), Contains("killed by signal 9 (SIGKILL)"));
  const auto victim = examples_test::process_of(job, 0);
  REQUIRE(victim.has_value());
  ::kill(*victim, SIGKILL);
  CHECK(job.end() == 1);  // there are no more restarts
}

TEST_CASE("--stop-after needs a time", "[examples][stop]") {
  const Ended ended = examples_test::run("mnist_ddp", {"--stop-after", "soon"});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Contains("--stop-after must be a time such as 90 (seconds), 30:00, 23:50:00 or 6-12:00:00; found 'soon'"));
}

TEST_CASE("A training whose ranks are killed at random moments ends with the parameters of one that was not", "[.][long][examples]") {
  using namespace std::chrono_literals;
  const std::vector<std::string> way = GENERATE(values<std::vector<std::string>>(
      {{"mnist_ddp", "--ranks", "2"}, {"mnist_zero", "--ranks", "3", "--stage", "3"}, {"mnist_pipeline", "--ranks", "2"}}));
  const Folder folder;
  std::vector<std::string> arguments{way.begin() + 1, way.end()};
  arguments.insert(arguments.end(), {"--epochs", "8", "--seed", "5"});
  auto reference = arguments;
  reference.insert(reference.end(), {"--save", folder / "expected"});
  REQUIRE(examples_test::run(way.front(), reference).code == 0);
  arguments.insert(arguments.end(), {"--save", folder / "found", "--checkpoint", folder / "run", "--checkpoint-every", "7"});
  std::mt19937 random{1};
  int kills = 0, completed = 0;
  while (kills < 67 || completed == 0) {
    launch_test::Job job{arguments, {}, PDP_TEST_EXAMPLES "/" + way.front()};
    const auto at = launch_test::Clock::now() + std::chrono::milliseconds{300 + random() % 900};
    while (launch_test::Clock::now() < at) job.read();
    const auto victim = kills < 67 ? examples_test::process_of(job, static_cast<int>(random() % 2)) : std::nullopt;
    if (victim) {
      ::kill(*victim, SIGKILL);
      ++kills;
    }
    const int code = job.end();
    CAPTURE(way.front(), kills, completed, job.err());
    if (code != 0) {
      CHECK_THAT(job.err(), Contains("SIGKILL"));
      continue;
    }
    ++completed;
    CHECK(launch_test::contents(folder / "found") == launch_test::contents(folder / "expected"));
    std::filesystem::remove_all(folder / "run");
  }
  CHECK(kills >= 67);
}

TEST_CASE("pdp-checkpoint inspects, verifies, exports and imports a checkpoint", "[examples][checkpoint]") {
  const auto tool = [](const std::vector<std::string>& arguments) {
    launch_test::Job job{arguments, {}, PDP_TEST_TOOLS "/pdp-checkpoint"};
    const int code = job.end();
    return Ended{code, job.out(), job.err()};
  };
  const Folder folder;
  REQUIRE(examples_test::run("mnist_zero", {"--ranks", "2", "--epochs", "1", "--seed", "3", "--checkpoint", folder / "run"}).code == 0);
  const std::string path = folder / "run/step-000036";

  const Ended inspected = tool({"inspect", folder / "run"});
  CHECK(inspected.code == 0);
  CHECK_THAT(inspected.out,
             StartsWith("checkpoint " + path + "\nstep 36, epoch 1, batch 0, seed 3, global batch 256\n2 files of 2 ranks, ") &&
                 Contains("\ntensor 0.weight F32 [64, 784]\n") && Contains("\ntensor exp_avg_sq of 6.bias F32 [10]\n"));
  const Ended intact = tool({"verify", path});
  CHECK(intact.code == 0);
  CHECK_THAT(intact.out, Contains(" pieces are intact"));

  CHECK(tool({"export", folder / "run", folder / "all.safetensors"}).code == 0);
  const auto tensors = pdp::checkpoint::load(folder / "all.safetensors");
  CHECK(tensors.size() == 3 * 8);
  const Ended imported = tool({"import", folder / "all.safetensors", folder / "other"});
  CHECK(imported.code == 0);
  CHECK(imported.out == (folder / "other/step-000036") + "\n");
  CHECK(tool({"export", folder / "other", folder / "again.safetensors"}).code == 0);
  const auto again = pdp::checkpoint::load(folder / "again.safetensors");
  REQUIRE(again.size() == tensors.size());
  for (std::size_t t = 0; t < again.size(); ++t) {
    CHECK(again[t].name == tensors[t].name);
    CHECK(again[t].shape == tensors[t].shape);
    CHECK(again[t].values == tensors[t].values);
  }
  // The imported one begins an epoch, and the state is that after 36 steps.
  const Ended more = examples_test::run("mnist_ddp", {"--ranks", "2", "--epochs", "1", "--seed", "3", "--checkpoint", folder / "other"});
  CHECK(more.code == 0);
  CHECK(newest(folder / "other") == 72);

  std::string bytes = launch_test::contents(path + "/rank-00001.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream{path + "/rank-00001.safetensors", std::ios::binary} << bytes;
  const Ended damaged = tool({"verify", path});
  CHECK(damaged.code == 1);
  CHECK_THAT(damaged.out, StartsWith(path + "/rank-00001.safetensors: ") && Contains("is damaged between the bytes "));
  const Ended refused = tool({"export", path, folder / "bad.safetensors"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, StartsWith("pdp-checkpoint: " + path + "/rank-00001.safetensors: "));
  CHECK(!std::filesystem::exists(folder / "bad.safetensors"));

  CHECK(tool({"inspect", folder / "nothing"}).code == 1);
  CHECK(tool({"guess", path}).code == 2);
  CHECK(tool({"--help"}).code == 0);
}
