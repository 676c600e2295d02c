#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "on_hosts.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;

namespace divergence_test {

/// A program in which the ranks of a world deadlock.
template <class Comm>
struct Divergence {
  std::string name;
  int ranks;
  std::vector<std::string> words;  // that every error contains
  std::function<void(Comm&)> program;
};

std::array<float, 3> three() { return {1, 2, 3}; }

template <class Comm>
std::vector<Divergence<Comm>> divergences() {
  return {
      {"two ranks that receive from each other",
       2,
       {"rank 0 for rank 1 (receive of 3 float32 with tag 4)", "tag 5)"},
       [](Comm& world) {
         auto values = three();
         world.recv(values, 1 - world.rank(), 4 + world.rank());
       }},
      {"a receive and a barrier",
       2,
       {"receive of 3 float32 with tag 7", "(barrier)"},
       [](Comm& world) {
         auto values = three();
         world.rank() == 0 ? world.recv(values, 1, 7) : world.barrier();
       }},
      {"a receive and an all_reduce, after a step that went well",
       3,
       {"receive of 3 float32 with tag 0", "all_reduce of 3 float32"},
       [](Comm& world) {
         auto values = three();
         if (world.rank() == 0) world.send(values, 1, 0);
         if (world.rank() == 1) world.recv(values, 0, 0);
         world.all_reduce(values, comm::Sum{});
         world.rank() == 1 ? world.recv(values, 0, 0) : world.all_reduce(values, comm::Sum{});
       }},
      {"a circle of five ranks, of which each receives from the next",
       5,
       {"5 ranks wait for each other in a cycle", "receive of 3 float32"},
       [](Comm& world) {
         auto values = three();
         world.recv(values, (world.rank() + 1) % world.size(), 0);
       }},
      {"a rank that receives what another one would send after a broadcast",
       4,
       {"receive of 3 float32", "broadcast of 3 float32"},
       [](Comm& world) {
         auto values = three();
         if (world.rank() == 2) world.recv(values, 3, 1);
         world.broadcast(values, 2);
         if (world.rank() == 3) world.send(values, 2, 1);
       }},
      {"a collective of a group and one of the world",
       4,
       {"all_reduce of 3 float32", "(barrier)"},
       [](Comm& world) {
         Comm half = world.split(world.rank() % 2, 0);
         auto values = three();
         if (world.rank() < 2)
           half.all_reduce(values, comm::Sum{});
         else
           world.barrier();
       }},
      {"a receive with a collective in flight",
       2,
       {"receive of 3 float32 with tag 1", "receive of 3 float32 with tag 2"},
       [](Comm& world) {
         auto values = three(), sum = three();
         auto work = world.rank() == 0 ? world.all_reduce_async(sum, comm::Sum{}) : typename Comm::Work{};
         world.recv(values, 1 - world.rank(), 1 + world.rank());
         work.wait();
       }},
      {"a rank that receives with another tag than what was sent to it",
       2,
       {"with tag 8"},
       [](Comm& world) {
         auto values = three();
         auto sent = world.rank() == 0 ? world.send_async(values, 1, 7) : typename Comm::Work{};
         auto more = three();
         world.recv(more, 1 - world.rank(), 8);
         sent.wait();
       }},
      {"pairs that wait crosswise for collectives of other groups",
       4,
       {"(barrier)"},
       [](Comm& world) {
         Comm rows = world.split(world.rank() / 2, 0), columns = world.split(world.rank() % 2, 0);
         const bool rows_first = world.rank() == 0 || world.rank() == 3;
         (rows_first ? rows : columns).barrier();
         (rows_first ? columns : rows).barrier();
       }},
  };
}

/// Runs the program and checks the error of each rank. Returns the seconds from the start of the last rank until all ranks have thrown.
template <class Comm>
double seconds_until_noticed(const Divergence<Comm>& divergence) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> began(static_cast<std::size_t>(divergence.ranks)), thrown(began.size());
  const auto errors = pdp::testing::errors<Comm>(
      divergence.ranks,
      [&](Comm& world) {
        const auto rank = static_cast<std::size_t>(world.rank());
        world.barrier();
        began[rank] = Clock::now();
        try {
          divergence.program(world);
          world.barrier();
        } catch (...) {
          thrown[rank] = Clock::now();
          throw;
        }
      },
      60s);
  for (const auto& error : errors) {
    INFO(error.what());
    CHECK(error.template is<pdp::MismatchedCollective>());
    for (const std::string& word : divergence.words) CHECK_THAT(error.what(), Contains(word));
    CHECK_THAT(error.what(), Contains("every rank must make the same calls in the same order"));
  }
  return std::chrono::duration<double>(*std::ranges::max_element(thrown) - *std::ranges::max_element(began)).count();
}

}  // namespace divergence_test

using namespace divergence_test;

TEMPLATE_TEST_CASE("Ranks that deadlock in different calls throw MismatchedCollective with both calls on every rank", "[comm][divergence]",
                   comm::Thread, comm::Shm, comm::Tcp, OnHosts) {
  OnHosts::layout = Layout::pairs;
  for (const Divergence<TestType>& each : divergences<TestType>()) {
    INFO(each.name);
    CHECK(seconds_until_noticed(each) < 4 * 2);  // the guarantee is 2 s; a loaded machine may take four times as long
  }
}

TEST_CASE("Two Thread ranks that both send before they receive throw MismatchedCollective", "[comm][divergence]") {
  const auto errors = pdp::testing::errors<comm::Thread>(
      2,
      [](comm::Thread& world) {
        auto values = three();
        world.send(values, 1 - world.rank(), 3);
        world.recv(values, 1 - world.rank(), 3);
      },
      60s);
  for (const auto& error : errors) {
    INFO(error.what());
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains("(send of 3 float32 with tag 3), and rank"));
  }
}

// In each round, messages and collectives of three groups are in flight at once. Each rank waits for them in an order of its own. One rank
// is late enough for the others to send probes.
TEMPLATE_TEST_CASE("Ranks that wait for a slow rank in any order are not reported as a deadlock", "[comm][divergence]", comm::Thread,
                   comm::Shm, comm::Tcp, OnHosts) {
  OnHosts::layout = Layout::pairs;
  constexpr int ranks = 4, rounds = 4;
  pdp::testing::ranks<TestType>(ranks, [&](TestType& world) {
    TestType half = world.split(world.rank() % 2, 0), other = world.split(world.rank() / 2, 0);
    std::mt19937 own_order(static_cast<unsigned>(world.rank()) + 1);
    for (int round = 0; round < rounds; ++round) {
      const int to = (world.rank() + 1) % ranks, from = (world.rank() + ranks - 1) % ranks;
      std::array<std::array<float, 3>, 3> sums{three(), three(), three()};
      std::vector<float> out(50'000, 1.0f), in(out.size());
      if (world.rank() == round % ranks) std::this_thread::sleep_for(700ms);
      std::vector<typename TestType::Work> works;
      works.push_back(world.all_reduce_async(sums[0], comm::Sum{}));
      works.push_back(half.all_reduce_async(sums[1], comm::Sum{}));
      works.push_back(other.all_reduce_async(sums[2], comm::Sum{}));
      works.push_back(world.recv_async(in, from, round));
      works.push_back(world.send_async(std::as_const(out), to, round));
      std::ranges::shuffle(works, own_order);
      for (auto& work : works) work.wait();
      if (sums[0][0] != 4 || sums[1][1] != 4 || sums[2][2] != 6 || in.back() != 1) throw std::logic_error{"wrong values"};
    }
  });
}

TEMPLATE_TEST_CASE("Every deadlock is reported within two seconds in each of 100 runs", "[comm][divergence][.long]", comm::Thread,
                   comm::Shm, comm::Tcp, OnHosts) {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved);
  if (!std::same_as<TestType, OnHosts> && OnHosts::layout != Layout::pairs) return;
  for (const Divergence<TestType>& each : divergences<TestType>()) {
    INFO(each.name);
    std::vector<double> seconds;
    for (int run = 0; run < 100; ++run) seconds.push_back(seconds_until_noticed(each));
    std::ranges::sort(seconds);
    std::printf("%s\n", pdp::text(R"({"campaign": "divergence", "comm": ")", TestType::name, R"(", "kind": ")", each.name, R"(", "runs": )",
                                  seconds.size(), R"(, "median_s": )", seconds[seconds.size() / 2], R"(, "max_s": )", seconds.back(), "}")
                            .c_str());
    CHECK(seconds.back() < 2);
  }
}
