#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "examples/run.hpp"

namespace streams_test {

using examples_test::Ended;
using examples_test::Folder;

namespace {

/// Runs a shell command, in which $P is the folder of the examples.
Ended shell(const std::string& command) {
  launch_test::Job job{{"-c", command}, {{"P", PDP_TEST_EXAMPLES}}, "/bin/sh"};
  const int code = job.end();
  return {code, job.out(), job.err()};
}

}  // namespace

TEST_CASE("Programs train and write complete files if standard streams are closed", "[examples][streams]") {
  const Folder folder;
  const std::string log = folder / "log.json", losses = folder / "losses.csv";
  const std::string streams = GENERATE(">&-", "<&-", "2>&-", "<&- >&- 2>&-");
  CAPTURE(streams);
  const Ended ended = shell("exec $P/mnist_ddp --ranks 2 --epochs 1 --log " + log + " --losses " + losses + " " + streams);
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  CHECK(nlohmann::json::parse(launch_test::contents(log)).at("epoch") == 0);
  CHECK(examples_test::losses(losses).size() == 36);
  CHECK(shell("exec $P/mnist_pipeline --ranks 3 --comm tcp --epochs 1 " + streams).code == 0);
  CHECK(shell("exec $P/mnist_single --help " + streams).code == 0);
}

TEST_CASE("Programs exit with code 1 and one line if standard output cannot be written", "[examples][streams]") {
  const std::string command =
      GENERATE("mnist_single --epochs 1", "mnist_single --help", "mnist_single --plan", "mnist_ddp --ranks 2 --epochs 1",
               "mnist_ddp --help", "mnist_ddp --threads 2 --epochs 1", "toy_mlp --help", "toy_mlp --plan --train-size 2000", "send_recv",
               "send_recv --help", "parallel_matmul --m 8 --n 8 --k 8");
  CAPTURE(command);
  const Ended ended = shell("exec $P/" + command + " > /dev/full");
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains("standard output cannot be written: "));
  CHECK(std::ranges::count(ended.err, '\n') == 1);
}

TEST_CASE("Programs print no error if the reader of their output ends early", "[examples][streams]") {
  for (const std::string command : {"mnist_ddp --ranks 2 --epochs 3", "mnist_single --epochs 3", "mnist_single --help"}) {
    CAPTURE(command);
    const Ended ended = shell("$P/" + command + " | head -n 1");
    CHECK(std::ranges::count(ended.out, '\n') == 1);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("mnist_single reports a file size limit as an error and leaves no partial file", "[examples][streams]") {
  const Folder folder;
  std::filesystem::create_directory(folder / "here");
  const std::string file = folder / "here/weights";
  const Ended ended = shell("ulimit -f 100; exec $P/mnist_single --epochs 1 --save " + file);
  CAPTURE(ended.err);
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains(file + ": cannot write it: File too large") && Contains("ulimit -f"));
  CHECK(std::ranges::count(ended.err, '\n') == 1);
  CHECK(std::filesystem::is_empty(folder / "here"));
}

}  // namespace streams_test
