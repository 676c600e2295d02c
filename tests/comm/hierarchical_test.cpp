#include <pdp/comm/any.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>

#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/on_hosts.hpp"

namespace comm = pdp::comm;

TEST_CASE("Default: every verb gives the serial result for every placement of ranks on hosts", "[comm][hierarchical]") {
  OnHosts::layout = GENERATE(Layout::one_host, Layout::pairs, Layout::interleaved, Layout::last_alone, Layout::all_alone);
  const int size = GENERATE(1, 2, 3, 4, 7);
  if (PDP_TEST_SANITIZED && size != 3 && size != 4) return;
  check_on_ranks<OnHosts>(size, [](OnHosts& world, Findings& findings) {
    if (world.size() == 4) return conformance::every_call(world, findings);
    conformance::every_verb<float>(world, findings);
    conformance::uneven_shards<float>(world, findings, 500);
  });
}

TEST_CASE("Default: groups of ranks on any hosts communicate on their own", "[comm][hierarchical][split]") {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved, Layout::last_alone);
  check_on_ranks<OnHosts>(7, [](OnHosts& world, Findings& findings) {
    OnHosts odd = world.split(world.rank() % 2, 0), turned = world.split(0, -world.rank()), half = world.split(world.rank() / 4, 0);
    OnHosts alone = half.split(half.rank(), 0);
    auto memory = turned.allocate<float>(20'000);
    for (int round = 0; round < 3; ++round) {
      std::ranges::fill(memory, 1.0f);
      std::vector<std::int64_t> a(10'000, world.rank()), b(3, 1), c(70'000, 2), d(1, 5);
      auto one = odd.all_reduce_async(a, comm::Sum{});
      auto two = turned.all_reduce_async(memory, comm::Sum{});
      auto three = half.all_reduce_async(c, comm::Sum{});
      auto four = world.all_reduce_async(b, comm::Sum{});
      alone.all_reduce(d, comm::Sum{});
      if (world.rank() % 3 == 0) three.wait();
      if (world.rank() % 3 == 1) four.wait();
      one.wait();
      two.wait();
      three.wait();
      four.wait();
      findings.expect(a.back() == (world.rank() % 2 == 0 ? 0 + 2 + 4 + 6 : 1 + 3 + 5), "a sum of odd or even ranks");
      findings.expect(std::ranges::count(memory, 7.0f) == 20'000 && b.back() == 7, "sums of all");
      findings.expect(c.back() == 2 * half.size() && d.back() == 5, "sums of a half and of one");
    }
    std::array root_says{world.rank()};
    turned.broadcast(root_says, 1);
    findings.expect(root_says[0] == 5, "a broadcast from a rank of the turned group");
  });
}

TEST_CASE("Default shares memory in a group only if all its ranks are on one host", "[comm][hierarchical][allocate]") {
  OnHosts::layout = GENERATE(Layout::one_host, Layout::pairs, Layout::all_alone);
  check_on_ranks<OnHosts>(4, [](OnHosts& world, Findings& findings) {
    behaviour::common_memory(world, findings, OnHosts::layout == Layout::one_host);
    OnHosts pair = world.split(world.rank() / 2, 0);
    behaviour::common_memory(pair, findings, OnHosts::layout != Layout::all_alone);
    comm::Any any{world.split(0, 0)};
    findings.expect(any.shares_memory() == world.shares_memory(), "through Any");
    behaviour::common_memory(any, findings, OnHosts::layout == Layout::one_host);
  });
}

TEST_CASE("Default wakes a sleeping rank for messages from its own host and from others", "[comm][hierarchical]") {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved);
  check_on_ranks<OnHosts>(4, [](OnHosts& world, Findings& findings) {
    std::array word{0};
    for (int sender = 1; sender < 4; ++sender) {
      if (world.rank() == sender) {
        std::this_thread::sleep_for(std::chrono::milliseconds{30});
        world.send(std::array{sender}, 0);
      }
      if (world.rank() == 0) {
        world.recv(word, sender);
        findings.expect(word[0] == sender, "a message");
      }
    }
    if (world.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds{30});
    world.barrier();
  });
}

TEST_CASE("Default names a failed rank on all hosts", "[comm][hierarchical][failure]") {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved, Layout::last_alone);
  const int culprit = GENERATE(0, 2, 4);
  const auto errors = pdp::testing::errors<OnHosts>(5, [culprit](OnHosts& world) {
    std::vector<float> values(5000);
    world.all_reduce(values, comm::Sum{});
    if (world.rank() == culprit) throw pdp::ConfigError{"a reason"};
    world.all_reduce(values, comm::Sum{});
  });
  for (int rank = 0; rank < 5; ++rank) {
    INFO("rank " << rank);
    if (rank == culprit) continue;
    CHECK(errors[static_cast<std::size_t>(rank)].lost_rank() == culprit);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)].what(), Contains("a reason"));
  }
}

TEST_CASE("Default throws MismatchedCollective on all hosts if calls differ", "[comm][hierarchical][mismatch]") {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved, Layout::last_alone);
  const int culprit = GENERATE(0, 1, 3);
  const int fault = GENERATE(0, 1, 2, 3);
  const auto errors = pdp::testing::errors<OnHosts>(4, [=](OnHosts& world) {
    std::vector<float> values(64);
    const bool other = world.rank() == culprit;
    if (fault == 0) world.all_reduce(std::span{values}.first(other ? 8 : 16), comm::Sum{});
    if (fault == 1) other ? world.broadcast(values, 0) : world.all_reduce(values, comm::Sum{});
    if (fault == 2) other ? world.barrier() : world.reduce(values, comm::Sum{}, 1);
    if (fault == 3) world.broadcast(values, other ? 2 : 1);
    world.barrier();
    world.barrier();
  });
  for (const auto& error : errors) {
    INFO("fault " << fault << ", culprit " << culprit << ": " << error.what());
    CHECK(error.is<pdp::MismatchedCollective>());
  }
}

TEST_CASE("Default::connect names the missing ranks at the deadline", "[comm][hierarchical]") {
  pdp::launch::InProcessStore store;
  const auto soon = comm::Clock::now() + std::chrono::milliseconds{300};
  std::string said;
  {
    std::jthread one{[&] {
      try {
        static_cast<void>(comm::Default::connect(store, 1, 4, soon));
      } catch (const pdp::Timeout&) {
      }
    }};
    try {
      static_cast<void>(comm::Default::connect(store, 0, 4, soon));
    } catch (const pdp::Timeout& error) {
      said = error.what();
    }
  }
  CHECK_THAT(said, Contains("rank 2, rank 3"));
}
