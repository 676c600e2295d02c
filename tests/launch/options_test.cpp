#include <string>
#include <string_view>
#include <vector>

#include <pdp/launch/options.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/starter.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

launch::Options options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return launch::Options::from(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("Options::from finds --ranks and --threads among a program's own arguments", "[launch][options]") {
  CHECK(options({"--epochs", "3", "--ranks", "4", "file"}).ranks == 4);
  CHECK(options({"--ranks=5"}).ranks == 5);
  CHECK(options({"--threads", "2"}).threads == 2);
  CHECK(options({"--threads=3", "-x"}).threads == 3);
  CHECK_FALSE(options({"--rankings", "4", "--ranksome=3", "-n", "2"}).ranks);
  CHECK_FALSE(options({"--", "--ranks", "4"}).ranks);
}

TEST_CASE("Options::from finds --comm among a program's own arguments", "[launch][options]") {
  CHECK(options({"--ranks", "2", "--comm", "shm", "file"}).comm == "shm");
  CHECK(options({"--ranks", "2", "--comm", "shm", "file"}).ranks == 2);
  CHECK(options({"--comm=tcp"}).comm == "tcp");
  CHECK(options({"--comm", "tcp", "--comm=shm"}).comm == "shm");
  CHECK(options({"--threads=3", "--comm=thread"}).threads == 3);
  CHECK(options({"--communicator", "tcp", "--compress=shm", "comm", "shm"}).comm.empty());
  CHECK(options({"--", "--comm", "tcp"}).comm.empty());
}

TEST_CASE("Options::from rejects --comm without a name", "[launch][options]") {
  const auto words = GENERATE(values<std::vector<const char*>>({{"--comm"}, {"--comm="}, {"--comm", ""}, {"--ranks", "2", "--comm"}}));
  CHECK_THROWS_AS(options(words), pdp::UsageError);
  CHECK_THROWS_WITH(options(words), "--comm must be followed by the name of a communicator, as in --comm tcp");
}

TEST_CASE("Options::from reads --rendezvous and rejects a malformed URL, or tcp:// with --threads", "[launch][options]") {
  CHECK(options({"--ranks", "2", "--rendezvous", "tcp://a:1", "file"}).rendezvous == "tcp://a:1");
  CHECK(options({"--rendezvous=file:///shared/job"}).rendezvous == "file:///shared/job");
  CHECK(options({"--", "--rendezvous", "tcp://a:1"}).rendezvous.empty());
  CHECK_THROWS_WITH(options({"--rendezvous"}), "--rendezvous must be followed by a URL, as in --rendezvous tcp://10.0.0.1:29500");
  CHECK_THROWS_WITH(options({"--rendezvous", "a:1"}), StartsWith("--rendezvous is 'a:1'"));
  CHECK_THROWS_WITH(options({"--threads", "2", "--rendezvous", "tcp://a:1"}), Contains("cannot be combined with --rendezvous 'tcp://a:1'"));
  CHECK_NOTHROW(options({"--threads", "2", "--rendezvous", "env://"}));
}

TEST_CASE("Options::check requires an address and a port or a rendezvous URL for several machines", "[launch][options]") {
  for (const char* url : {"tcp://a:1", "file:///shared/job"}) {
    CHECK_NOTHROW((launch::Options{.nodes = 2, .rendezvous = url}.check()));
    CHECK_THROWS_WITH((launch::Options{.nodes = 2, .address = "b", .port = 2, .rendezvous = url}.check()), Contains("exclude each other"));
  }
  CHECK_THROWS_WITH((launch::Options{.nodes = 2, .rendezvous = "env://"}.check()), Contains("address of machine 0"));
}

TEST_CASE("Options::from rejects a wrong number of ranks or threads and names the flag", "[launch][options]") {
  const auto words = GENERATE(values<std::vector<const char*>>(
      {{"--ranks", "0"}, {"--ranks", "-2"}, {"--ranks=x"}, {"--ranks="}, {"--ranks"}, {"--threads", "0"}, {"--threads=2.5"}}));
  CHECK_THROWS_AS(options(words), pdp::UsageError);
  CHECK_THROWS_WITH(options(words), StartsWith(std::string{words[0]}.substr(0, 7)));
}

TEST_CASE("Options::check rejects ranks with threads or several machines, and values out of range", "[launch][options]") {
  CHECK_THROWS_WITH(options({"--ranks", "2", "--threads", "3"}), Contains("--ranks 2 and --threads 3 exclude each other"));
  CHECK_THROWS_AS((launch::Options{.ranks = 2, .nodes = 2}.check()), pdp::UsageError);
  CHECK_THROWS_AS((launch::Options{.threads = 2, .processes_per_node = 2}.check()), pdp::UsageError);
  CHECK_THROWS_AS((launch::Options{.nodes = 0}.check()), pdp::UsageError);
  CHECK_THROWS_AS((launch::Options{.nodes = 2, .node_rank = 2, .address = "a", .port = 1}.check()), pdp::UsageError);
  CHECK_THROWS_WITH((launch::Options{.nodes = 2, .port = 1}.check()), Contains("address of machine 0"));
  CHECK_THROWS_WITH((launch::Options{.nodes = 2, .address = "a", .port = 70000}.check()), Contains("70000"));
  CHECK_NOTHROW((launch::Options{.nodes = 2, .node_rank = 1, .processes_per_node = 4, .address = "a", .port = 8888}.check()));
  CHECK((launch::Options{.nodes = 2, .processes_per_node = 4}.processes()) == 8);
  CHECK((launch::Options{.nodes = 2}.processes()) == 2);
  CHECK_FALSE((launch::Options{}.processes()));
}

TEST_CASE("Options::ranks_are_given is true if the options or the environment determine the ranks", "[launch][options]") {
  const launch::Variables nothing = [](const char*) -> const char* { return nullptr; };
  const launch::Variables rank = [](const char* name) { return std::string_view{name} == "RANK" ? "0" : nullptr; };
  CHECK_FALSE(launch::Options{}.ranks_are_given(nothing));
  CHECK_FALSE((launch::Options{.comm = "tcp", .port = 8888}.ranks_are_given(nothing)));
  CHECK(launch::Options{}.ranks_are_given(rank));
  CHECK(launch::Options{.ranks = 1}.ranks_are_given(nothing));
  CHECK(launch::Options{.threads = 1}.ranks_are_given(nothing));
  CHECK((launch::Options{.nodes = 2}.ranks_are_given(nothing)));
  CHECK((launch::Options{.processes_per_node = 1}.ranks_are_given(nothing)));
}

TEST_CASE("Numbers that are malformed or out of range are rejected with the allowed range", "[launch][options]") {
  for (const std::string flag : {"--ranks", "--threads"}) {
    CAPTURE(flag);
    for (const char* word : {"0", "-1", "4097"})
      CHECK_THROWS_WITH(options({flag.c_str(), word}), flag + " must be from 1 to 4096; found " + word);
    for (const char* word : {"four", "4x", "4.5", "0x4", " 4", "+4", "99999999999999999999"})
      CHECK_THROWS_WITH(options({flag.c_str(), word}), flag + " must be a number from 1 to 4096; found '" + word + "'");
    CHECK_THROWS_WITH(options({flag.c_str(), ""}), flag + " must be followed by a number, as in " + flag + " 4");
  }
  CHECK(options({"--ranks", "4096"}).ranks == 4096);
  CHECK_THROWS_WITH((launch::Options{.nodes = 2, .processes_per_node = 4097, .address = "a", .port = 1}.check()),
                    "the number of processes on each machine must be from 1 to 4096; found 4097");
  for (const char* word : {"nan", "inf", "-1", "1e9", "two", "1.5s", ""})
    CHECK_THROWS_WITH(launch::parse_number("a time", word, 0.0, 1e8),
                      StartsWith("a time must be ") && Contains("from 0 to 100000000; found"));
}
