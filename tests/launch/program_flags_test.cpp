#include <pdp/core/error.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/program_flags.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

namespace program_flags_test {

using pdp::launch::Arguments, pdp::launch::Options, pdp::launch::ProgramFlags;

namespace {

Arguments own(std::vector<const char*> arguments, const ProgramFlags& program = {}) {
  arguments.insert(arguments.begin(), "program");
  Options options;
  return options.read(static_cast<int>(arguments.size()), arguments.data(), program);
}

bool asks(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return pdp::launch::asks_for_help(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("Options::read returns a program's own arguments in their order", "[launch][options]") {
  CHECK(own({}).empty());
  CHECK(own({"--ranks", "2"}).empty());
  CHECK(own({"a", "--ranks", "2", "-b", "--comm=tcp", "c", "--", "d", "--ranks", "x", "--"}) ==
        Arguments{"a", "-b", "c", "d", "--ranks", "x", "--"});
  CHECK(own({"--", "--rank"}) == Arguments{"--rank"});
  CHECK(own({"--"}).empty());
  CHECK(own({"", "--epochs=3", "--help"}) == Arguments{"", "--epochs=3", "--help"});
}

TEST_CASE("Options::read rejects an argument that looks like a misspelt flag and says which was meant", "[launch][options]") {
  const auto [word, flag] = GENERATE(table<std::string, std::string>({{"--rank", "--ranks"},
                                                                      {"--rank=4", "--ranks"},
                                                                      {"--rnaks", "--ranks"},
                                                                      {"--nranks", "--ranks"},
                                                                      {"--Ranks", "--ranks"},
                                                                      {"--ranks4", "--ranks"},
                                                                      {"-ranks", "--ranks"},
                                                                      {"--thread", "--threads"},
                                                                      {"--treads=2", "--threads"},
                                                                      {"--restart", "--restarts"},
                                                                      {"--com", "--comm"},
                                                                      {"--comms", "--comm"},
                                                                      {"-comm", "--comm"},
                                                                      {"--rendevous", "--rendezvous"},
                                                                      {"--randevous", "--rendezvous"}}));
  CHECK_THROWS_AS(own({"file", word.c_str(), "4"}), pdp::UsageError);
  CHECK_THROWS_WITH(own({"file", word.c_str(), "4"}), "'" + word + "' is no flag of this program; did you mean " + flag +
                                                          "? Put -- before the program's own arguments if not");
  CHECK_NOTHROW(own({"--", word.c_str()}));
}

TEST_CASE("Options::read leaves flags that resemble none of its own, and those that the program's help names", "[launch][options]") {
  for (const char* word : {"--epochs", "--tasks", "--reads", "--rows", "--common", "--communicator", "--command", "--start", "-r", "-com",
                           "rank", "ranks", "-", "---", "--a-very-long-flag-with-a-value-and-more", "--world-size=4", "-4"})
    CHECK(own({word, "--ranks=2"}) == Arguments{word});
  const ProgramFlags program{.help = "  --rank N (or -ranks), --restart FILE"};
  for (const char* word : {"--rank", "--rank=4", "-ranks", "--restart"}) CHECK(own({word}, program) == Arguments{word});
  for (const char* word : {"--rnaks", "--threads2"}) CHECK_THROWS_AS(own({word}, program), pdp::UsageError);
  CHECK_THROWS_AS(own({"--rank"}, {.help = "--rank-of-the-matrix --no--rank"}), pdp::UsageError);
}

TEST_CASE("asks_for_help finds --help before --", "[launch][options]") {
  CHECK(asks({"--help"}));
  CHECK(asks({"a", "--ranks", "2", "--help", "--"}));
  CHECK_FALSE(asks({}));
  CHECK_FALSE(asks({"--", "--help"}));
  CHECK_FALSE(asks({"help", "-help", "--help=1"}));
}

TEST_CASE("help_text has the program's lines and then one for each flag of launch::run", "[launch][options]") {
  const std::string own = pdp::launch::help_text({.help = "  --epochs N"});
  CHECK_THAT(own, StartsWith("  --epochs N\n\nFlags of pdp:\n  --ranks N           start N processes"));
  for (const pdp::launch::Flag& flag : pdp::launch::flags_of_run) CHECK_THAT(own, Contains(pdp::text("\n  ", flag.name, ' ')));
  CHECK_THAT(own, Contains("\n  --                  ends these flags"));
  CHECK_THAT(pdp::launch::help_text({}), StartsWith("Flags of pdp:\n"));
}

}  // namespace program_flags_test
