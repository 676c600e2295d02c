#include <signal.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <pdp/checkpoint/folder.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;
using examples_test::losses;

namespace {

Ended run_in(const std::string& folder, std::vector<std::string> arguments, const std::string& program) {
  arguments.insert(arguments.end(), {"--checkpoint", folder + "run", "--losses", folder + "losses.csv"});
  return examples_test::run(program, arguments);
}

/// Starts a program that trains for long, and sends a signal to its launcher when it has saved a checkpoint.
Ended stopped_by(int signal, const std::string& folder, const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--checkpoint", folder + "run", "--checkpoint-every", "1"});
  launch_test::Job job{arguments, {}, PDP_TEST_EXAMPLES "/" + program};
  for (const auto until = launch_test::Clock::now() + launch_test::Job::patience;
       pdp::checkpoint::checkpoints_in(folder + "run").empty() && launch_test::Clock::now() < until;)
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
  const Ended ended = stopped_by(signal, folder / "", program, arguments);
  CAPTURE(program, ended.err);
  CHECK(ended.code == 75);
  CHECK_THAT(ended.err, StartsWith("stopped on request after step ") && Contains("start the program again to continue"));
  const auto before = pdp::checkpoint::checkpoints_in(folder / "run").back().step;
  const Ended again = stopped_by(signal, folder / "", program, arguments);
  CHECK(again.code == 75);
  CHECK(pdp::checkpoint::checkpoints_in(folder / "run").back().step > before);
}

TEST_CASE("A program with --stop-after continues, and ends as one that was not stopped", "[examples][stop]") {
  const Folder whole, parts;
  const std::vector<std::string> arguments{"--ranks", "2", "--epochs", "3", "--seed", "3"};
  const Ended expected = run_in(whole / "", arguments, "mnist_ddp");
  REQUIRE(expected.code == 0);
  const std::size_t steps = losses(whole / "losses.csv").size();

  auto limited = arguments;
  limited.insert(limited.end(), {"--stop-after", "1"});
  CHECK(run_in(parts / "", limited, "mnist_ddp").code == 75);
  const auto stopped_at = static_cast<std::size_t>(pdp::checkpoint::checkpoints_in(parts / "run").back().step);
  const Ended ended = run_in(parts / "", arguments, "mnist_ddp");
  REQUIRE(ended.code == 0);
  CHECK(examples_test::last_line(ended.out) == examples_test::last_line(expected.out));
  CHECK(static_cast<std::size_t>(pdp::checkpoint::checkpoints_in(parts / "run").back().step) == steps);
  if (stopped_at < steps) CHECK_THAT(ended.out, Contains("### Epoch 2 ||"));
}

TEST_CASE("--stop-after needs a time", "[examples][stop]") {
  const Ended ended = examples_test::run("mnist_ddp", {"--stop-after", "soon"});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Contains("--stop-after must be a time such as 90 (seconds), 30:00, 23:50:00 or 6-12:00:00; found 'soon'"));
}
