// Ranks as processes, started as from a shell.
#include <pdp/launch/store/tcp_store_server.hpp>

#include <memory>
#include <random>

#include "catch.hpp"
#include "launch/job.hpp"

using launch_test::Job;
using namespace std::chrono_literals;

namespace {

const std::string program = PDP_TEST_PROGRAMS "/gloo_program";

}  // namespace

TEST_CASE("launch::run uses Gloo if the command line says --comm gloo", "[comm][gloo][launch]") {
  Job job{{"sum", "--ranks", "4", "--comm", "gloo"}, {}, program};
  CHECK(job.end() == 0);
  CHECK(job.out() == "gloo on 4 ranks, sum 10\n");
  CHECK(job.err().empty());
}

TEST_CASE("Gloo reports a killed process as lost on all other ranks", "[comm][gloo][launch][faults]") {
  const std::string mode = GENERATE("small", "large");
  std::mt19937 random{random_seed()};
  for (int trial = 0; trial < 3; ++trial) {
    const std::string port = std::to_string(pdp::launch::TcpStoreServer{}.port());
    std::vector<std::unique_ptr<Job>> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back(std::make_unique<Job>(std::vector<std::string>{mode, "--comm", "gloo"},
                                            std::vector<launch_test::Variable>{{"RANK", std::to_string(rank)},
                                                                               {"WORLD_SIZE", "4"},
                                                                               {"LOCAL_RANK", std::to_string(rank)},
                                                                               {"MASTER_ADDR", "127.0.0.1"},
                                                                               {"MASTER_PORT", port}},
                                            program));
    ranks[0]->wait_for("ready");
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 20'000});
    const auto killed = std::chrono::steady_clock::now();
    ranks[2]->signal(SIGKILL);
    for (const int rank : {0, 1, 3}) {
      Job& job = *ranks[static_cast<std::size_t>(rank)];
      const int code = job.end();
      INFO("rank " << rank << ": " << job.out() << job.err());
      CHECK(code == 1);
      CHECK_THAT(job.err(), Contains("rank 2 is gone"));
    }
    CHECK(std::chrono::steady_clock::now() - killed < 5s);
    ranks[2]->end();
  }
}
