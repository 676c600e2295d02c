#include <algorithm>
#include <cmath>
#include <regex>

#include "catch.hpp"
#include "examples/run.hpp"

namespace parallel_matmul_test {

using examples_test::Ended;
using examples_test::run;
using Words = std::vector<std::string>;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Reads both relative errors from the last two lines. NaN stands for a malformed line.
std::pair<double, double> errors(const std::vector<std::string>& lines) {
  const auto error = [](const std::string& line, const std::string& way) {
    std::smatch number;
    return std::regex_match(line, number, std::regex{way + ": relative error (\\d\\.\\d\\de[+-]\\d\\d)"}) ? std::stod(number[1])
                                                                                                          : std::nan("");
  };
  if (lines.size() < 2) return {std::nan(""), std::nan("")};
  return {error(lines.end()[-2], "by row"), error(lines.back(), "by reduction")};
}

/// Checks that each rank has printed a greeting, in any order, and that two small errors follow.
void check_products(const Ended& ended, int ranks) {
  CAPTURE(ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  std::vector<std::string> lines = lines_of(ended.out);
  const auto [row, reduction] = errors(lines);
  CHECK(row <= 1e-5);
  CHECK(reduction <= 1e-5);
  REQUIRE(lines.size() == static_cast<std::size_t>(ranks) + 2);
  lines.resize(static_cast<std::size_t>(ranks));
  std::sort(lines.begin(), lines.end());
  for (int rank = 0; rank < ranks; ++rank)
    CHECK(lines[static_cast<std::size_t>(rank)] == pdp::text("My rank is ", rank, ", same as ", rank));
}

}  // namespace

TEST_CASE("parallel_matmul by row and by reduction equals the serial product for all sizes and ranks", "[examples]") {
  const auto [flag, comm] =
      GENERATE(table<std::string, std::string>({{"--world-size", "tcp"}, {"--world-size", "shm"}, {"--threads", "thread"}}));
  const int ranks = GENERATE(1, 2, 3, 4);
  const std::vector<Words> shapes{{"7", "5", "3"}, {"1", "9", "2"}, {"3", "1", "1"}, {"1", "1", "1"}, {"65", "33", "130"}};
  for (const Words& shape : shapes) {
    CAPTURE(flag, comm, ranks, shape);
    check_products(run("parallel_matmul", {flag, std::to_string(ranks), "--comm", comm, "--m", shape[0], "--n", shape[1], "--k", shape[2]}),
                   ranks);
  }
}

TEST_CASE("parallel_matmul has no error by row on one rank, and a rounding error by reduction on four", "[examples]") {
  const auto alone = run("parallel_matmul", {"--ranks", "1", "--m", "40", "--n", "30", "--k", "1000"});
  CHECK(errors(lines_of(alone.out)).first == 0);
  const auto spread = run("parallel_matmul", {"--threads", "4", "--m", "40", "--n", "30", "--k", "1000"});
  CHECK(errors(lines_of(spread.out)).second > 0);
  CHECK(errors(lines_of(spread.out)).second < 1e-6);
}

TEST_CASE("parallel_matmul starts two ranks by default, and joins ranks that are started one by one", "[examples]") {
  check_products(run("parallel_matmul", {"--m", "6", "--n", "4", "--k", "5"}), 2);
  const std::string port = std::to_string(launch_test::free_port());
  const Words sizes{"--m", "6", "--n", "4", "--k", "5"};
  const auto variables = [&](const std::string& rank) {
    return std::vector<launch_test::Variable>{{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
  };
  launch_test::Job first{sizes, variables("0"), PDP_TEST_EXAMPLES "/parallel_matmul"};
  launch_test::Job second{sizes, variables("1"), PDP_TEST_EXAMPLES "/parallel_matmul"};
  CHECK(first.end() == 0);
  CHECK(second.end() == 0);
  CHECK(second.out() == "My rank is 1, same as 1\n");
  check_products({0, second.out() + first.out(), first.err() + second.err()}, 2);
}

TEST_CASE("parallel_matmul rejects impossible sizes and unknown flags with exit code 2 and one line", "[examples][bad input]") {
  const std::vector<std::pair<Words, Words>> cases{{{"--m", "0"}, {"--m", "0"}},
                                                   {{"--n", "-4"}, {"--n", "-4"}},
                                                   {{"--k", "many"}, {"--k", "many"}},
                                                   {{"--k", "2.5"}, {"--k", "2.5"}},
                                                   {{"--m"}, {"--m"}},
                                                   {{"--m", "99999999999999999999"}, {"--m", "99999999999999999999"}},
                                                   {{"--m", "9223372036854775807"}, {"--m", "9223372036854775807"}},
                                                   {{"--n", "1", "--m", "2000000"}, {"matrix A", "2000000 x 1024"}},
                                                   {{"--m", "1", "--k", "50000", "--n", "30000"}, {"matrix B", "50000 x 30000"}},
                                                   {{"--k", "1", "--m", "100000", "--n", "100000"}, {"matrix C", "100000 x 100000"}},
                                                   {{"--world-size", "0"}, {"ranks"}},
                                                   {{"--world-size", "2000000"}, {"ranks", "2000000"}},
                                                   {{"--world-size", "2", "--threads", "2"}, {"--ranks", "--threads"}},
                                                   {{"--size", "4"}, {"--size"}},
                                                   {{"4"}, {"4"}}};
  for (const auto& [arguments, words] : cases) {
    CAPTURE(arguments);
    const Ended ended = run("parallel_matmul", arguments);
    CAPTURE(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
    for (const std::string& word : words) CHECK_THAT(ended.err, Contains(word));
  }
}

TEST_CASE("parallel_matmul --help names its flags and the default size", "[examples]") {
  const Ended ended = run("parallel_matmul", {"--help"});
  CHECK(ended.code == 0);
  for (const char* word : {"--m", "--n", "--k", "1024", "--ranks", "--world-size", "--threads", "--comm"})
    CHECK_THAT(ended.out, Contains(word));
}

}  // namespace parallel_matmul_test
