#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <pdp/checkpoint/folder.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;

namespace {

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

TEST_CASE("A program stops when the time of --stop-after or PDP_STOP_AFTER is over, and then continues", "[examples][stop]") {
  const Folder folder;
  const bool by_variable = GENERATE(false, true);
  std::vector<std::string> arguments{"--ranks", "2", "--seed", "3", "--checkpoint", folder / "run", "--epochs", "1000000"};
  if (!by_variable) arguments.insert(arguments.end(), {"--stop-after", "1"});
  std::vector<launch_test::Variable> variables;
  if (by_variable) variables.emplace_back("PDP_STOP_AFTER", "00:01");
  CHECK(examples_test::run("mnist_ddp", arguments, variables).code == 75);
  const auto steps = pdp::checkpoint::checkpoints_in(folder / "run").back().step;
  constexpr std::int64_t of_epoch = 36;  // 9,000 samples in batches of 256
  const std::int64_t epochs = steps / of_epoch + 1;
  const Ended ended =
      examples_test::run("mnist_ddp", {"--ranks", "2", "--seed", "3", "--checkpoint", folder / "run", "--epochs", std::to_string(epochs)});
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, StartsWith(pdp::text("### Epoch ", epochs - 1, " ||")));
  CHECK(pdp::checkpoint::checkpoints_in(folder / "run").back().step == epochs * of_epoch);
}

TEST_CASE("--stop-after needs a time", "[examples][stop]") {
  const Ended ended = examples_test::run("mnist_ddp", {"--stop-after", "soon"});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Contains("--stop-after must be a time such as 90 (seconds), 30:00, 23:50:00 or 6-12:00:00; found 'soon'"));
}
