#include <algorithm>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using launch_test::Job;

namespace {

constexpr const char* program = PDP_TEST_EXAMPLES "/send_recv";
const std::string sent = "Rank-0 has sent the following tensor to Rank-1\ntensor([ 1., -1.])\n";
const std::string received = "Rank-1 has received the following tensor from Rank-0\ntensor([ 1., -1.])\n";

Ended send_recv(const std::vector<std::string>& arguments, const std::vector<launch_test::Variable>& variables = {}) {
  Job job{arguments, variables, program};
  const int code = job.end();
  return {code, job.out(), job.err()};
}

}  // namespace

TEST_CASE("send_recv prints the sent and then the received tensor, however its two ranks are started", "[examples]") {
  std::vector<std::vector<std::string>> ways{{},
                                             {"--ranks", "2"},
                                             {"--world-size", "2"},
                                             {"--threads", "2"},
                                             {"--comm", "shm"},
                                             {"--comm", "tcp"},
                                             {"--ranks", "2", "--comm=shm"}};
  if (send_recv({"--comm", "carrier-pigeon"}).err.find("gloo") != std::string::npos) ways.push_back({"--comm", "gloo"});
  for (const auto& way : ways) {
    CAPTURE(way);
    const auto ended = send_recv(way);
    CHECK(ended.code == 0);
    CHECK(ended.out == sent + received);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("Each rank of send_recv prints only its own part if the ranks are started one by one", "[examples]") {
  const std::string port = std::to_string(launch_test::free_port());
  const auto variables = [&](const std::string& rank) {
    return std::vector<launch_test::Variable>{{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
  };
  Job sender{{}, variables("0"), program};
  Job receiver{{}, variables("1"), program};
  CHECK(sender.end() == 0);
  CHECK(receiver.end() == 0);
  CHECK(sender.out() == sent);
  CHECK(receiver.out() == received);
}

TEST_CASE("send_recv rejects another number of ranks or a wrong flag with exit code 2 and one line", "[examples][bad input]") {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases{{{"--ranks", "1"}, {"2 ranks", "found 1"}},
                                                   {{"--ranks", "3"}, {"2 ranks", "found 3"}},
                                                   {{"--threads", "1"}, {"2 ranks", "found 1"}},
                                                   {{"--threads", "4"}, {"2 ranks", "found 4"}},
                                                   {{"--ranks", "0"}, {"ranks"}},
                                                   {{"--world-size", "-2"}, {"ranks"}},
                                                   {{"--ranks", "two"}, {"ranks", "two"}},
                                                   {{"--treads", "2"}, {"treads"}},
                                                   {{"--comm", "carrier-pigeon"}, {"--comm 'carrier-pigeon'", "hierarchical, tcp", "shm"}},
                                                   {{"--comm", "thread"}, {"--comm thread", "--threads N"}},
                                                   {{"--ranks", "2", "--threads", "2"}, {"exclude"}}};
  for (const auto& [arguments, words] : cases) {
    CAPTURE(arguments);
    const auto ended = send_recv(arguments);
    CAPTURE(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
    for (const std::string& word : words) CHECK_THAT(ended.err, Contains(word));
  }
  const auto alone = send_recv({}, {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Contains("found 1"));
}
