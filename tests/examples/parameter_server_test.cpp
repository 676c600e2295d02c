#include <string>
#include <vector>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::last_line;

namespace {

/// Returns the number behind `name` in a line.
double number_after(const std::string& line, const std::string& name) { return std::stod(line.substr(line.find(name) + name.size())); }

}  // namespace

TEST_CASE("parameter_server trains a classifier with several workers, servers and bounds on staleness", "[examples]") {
  const std::vector<std::string> way = GENERATE(
      values<std::vector<std::string>>({{"--threads", "4"}, {"--servers", "2", "--workers", "1"}, {"--staleness", "3", "--comm", "tcp"}}));
  std::vector<std::string> flags{"--epochs", "2", "--batch-size", "64"};
  flags.insert(flags.end(), way.begin(), way.end());
  const Ended ended = examples_test::run("parameter_server", flags);
  CAPTURE(way, ended.out, ended.err);
  REQUIRE(ended.code == 0);
  const std::string line = last_line(ended.out);
  CHECK_THAT(line, StartsWith("Epoch 1 || loss "));
  CHECK(number_after(line, "test accuracy ") > 0.8);
}

TEST_CASE("parameter_server needs as many ranks as its flags say", "[examples]") {
  const Ended ended = examples_test::run("parameter_server", {"--threads", "3"});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains("4 names were given for 3 ranks"));
  CHECK(examples_test::run("parameter_server", {"--workers", "0"}).code == 2);
}

TEST_CASE("actor_learner learns from episodes of its actors", "[examples]") {
  const Ended ended = examples_test::run("actor_learner", {"--threads", "3", "--updates", "60", "--seed", "1"});
  CAPTURE(ended.out, ended.err);
  REQUIRE(ended.code == 0);
  const std::string line = last_line(ended.out);
  CHECK_THAT(line, StartsWith("Update 60 || mean length of an episode "));
  CHECK(number_after(line, "episode ") > 45);  // a policy that does not learn stays near 22
  CHECK(examples_test::run("actor_learner", {"--threads", "1"}).code == 2);
}
