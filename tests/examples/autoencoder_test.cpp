#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/core/error.hpp>
#include <pdp/testing/values.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;
using examples_test::losses;

namespace {

Ended run_with(const std::string& program, std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return examples_test::run(program, arguments);
}

}  // namespace

TEST_CASE("autoencoder_rpc has the losses of autoencoder_single over every communicator", "[examples]") {
  const Folder folder;
  const std::vector<std::string> flags{"--epochs", "2", "--seed", "3", "--losses", folder / "losses.csv", "--save", folder / "saved"};
  const Ended single = run_with("autoencoder_single", flags, {});
  REQUIRE(single.code == 0);
  const std::vector<double> expected = losses(folder / "losses.csv");
  REQUIRE(expected.size() >= 200);
  CHECK(expected.back() < 0.03);
  const auto parameters = pdp::checkpoint::load(folder / "saved");

  const std::vector<std::string> way =
      GENERATE(values<std::vector<std::string>>({{"--threads", "3"}, {"--comm", "shm"}, {"--comm", "tcp", "--devices-per-worker", "2"}}));
  const Ended ended = run_with("autoencoder_rpc", flags, way);
  CAPTURE(way, ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out == single.out);
  CHECK_THAT(ended.out, Contains("Epoch 1 || Batch 20 ---- Training MSE: 0.0"));
  const std::vector<double> found = losses(folder / "losses.csv");
  REQUIRE(found.size() == expected.size());
  for (std::size_t step = 0; step < found.size(); ++step) REQUIRE_THAT(found[step], WithinRel(expected[step], 1e-5));
  const auto saved = pdp::checkpoint::load(folder / "saved");
  REQUIRE(saved.size() == parameters.size());
  for (std::size_t i = 0; i < saved.size(); ++i) CHECK(saved[i].name == parameters[i].name);
}

TEST_CASE("autoencoder_rpc has the losses of PyTorch's remote objects from the same weights and data", "[examples][parity]") {
  const Folder folder;
  std::istringstream lines{launch_test::contents(PDP_TEST_PARITY "/autoencoder_losses.csv")};
  std::string line;
  std::getline(lines, line);
  std::vector<double> torch;
  while (std::getline(lines, line)) torch.push_back(std::stod(line.substr(line.find(',') + 1)));
  REQUIRE(torch.size() == 100);

  const std::vector<std::string> way = GENERATE(values<std::vector<std::string>>({{"--ranks", "3"}, {"--threads", "3"}}));
  REQUIRE(run_with("autoencoder_rpc", {"--epochs", "1", "--seed", "1", "--losses", folder / "losses.csv"}, way).code == 0);
  const std::vector<double> own = losses(folder / "losses.csv");
  REQUIRE(own.size() > torch.size());
  for (std::size_t step = 0; step < torch.size(); ++step) {
    CAPTURE(way, step);
    CHECK_THAT(own[step], WithinRel(torch[step], 1e-4));
  }
}

TEST_CASE("Either worker of autoencoder_rpc can be killed at any time", "[.][long][examples]") {
  using namespace std::chrono_literals;
  std::mt19937 random{1};
  for (int kill = 0; kill < 100; ++kill) {
    std::vector<std::string> arguments{"--epochs", "1000", "--comm", kill % 4 < 2 ? "hierarchical" : "tcp"};
    if (kill % 8 < 4) arguments.emplace_back("--pipelined");
    launch_test::Job job{arguments, {}, PDP_TEST_EXAMPLES "/autoencoder_rpc"};
    while (job.out().find("Batch 20") == std::string::npos && job.err().empty()) job.read();
    const int victim = 1 + kill % 2;
    const pid_t process = examples_test::process_of(job, victim).value();
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 100'000});
    const auto killed = launch_test::Clock::now();
    ::kill(process, SIGKILL);
    CAPTURE(kill, job.err());
    CHECK(job.end() == 1);
    CHECK(launch_test::Clock::now() - killed < 2s);
    CHECK_THAT(job.err(), StartsWith(pdp::text("rank ", victim)) && Contains("killed by signal 9 (SIGKILL)"));
  }
}

TEST_CASE("autoencoder_rpc --pipelined has the losses of whole batches at first, and learns", "[examples]") {
  const Folder folder;
  const std::vector<std::string> flags{"--epochs", "1", "--losses", folder / "losses.csv"};
  REQUIRE(run_with("autoencoder_single", flags, {}).code == 0);
  const std::vector<double> expected = losses(folder / "losses.csv");
  REQUIRE(run_with("autoencoder_rpc", flags, {"--pipelined"}).code == 0);
  const std::vector<double> found = losses(folder / "losses.csv");
  REQUIRE(found.size() == expected.size());
  for (std::size_t step = 0; step < 10; ++step) CHECK_THAT(found[step], WithinRel(expected[step], 1e-3));
  CHECK(found.back() < 0.035);
}

TEST_CASE("autoencoder_rpc rejects a number of ranks other than 3", "[examples]") {
  const Ended ended = examples_test::run("autoencoder_rpc", {"--threads", "2"});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains("3 names were given for 2 ranks"));
}
