#include <filesystem>
#include <string>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
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
