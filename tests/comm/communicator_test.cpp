#include <pdp/comm/any.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/values.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "behaviour.hpp"

namespace comm = pdp::comm;
using pdp::text;

TEMPLATE_TEST_CASE("all_reduce leaves the sum over ranks, with the same bits on every rank", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(2, 3, 7);
  const std::size_t elements = GENERATE(as<std::size_t>{}, 255, 4096, 4097, PDP_TEST_SANITIZED ? 70'007 : 300'007);

  const auto results = pdp::testing::ranks<TestType>(size, [&](TestType& world) {
    auto values = pdp::testing::normal(elements, /*seed*/ world.rank());
    world.all_reduce(values, comm::Sum{});
    return values;
  });

  const auto expected = pdp::testing::serial_sum(size, elements);
  for (const auto& values : results) {
    CHECK(pdp::testing::relative_difference(values, expected) < 1e-6);
    CHECK(pdp::testing::same_bits(values, results.front()));
  }
}

TEMPLATE_TEST_CASE("a split makes groups that live on their own", "[comm][split]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(1, 4, 7);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEMPLATE_TEST_CASE("works may be waited for in any order", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(2, 3, 4);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEMPLATE_TEST_CASE("whoever only looks whether a work is done sees it end", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 1, 300'007);
  check_on_ranks<TestType>(3, [elements](TestType& world, Findings& findings) { behaviour::looks(world, findings, elements); });
}

TEMPLATE_TEST_CASE("a work whose world has failed is done, and waiting for it says why", "[comm][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const auto errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
    if (world.rank() == 1) throw pdp::ConfigError{"a reason"};
    std::array value{0};
    auto receiving = world.recv_async(value, 1);
    while (!receiving.done()) std::this_thread::yield();
    receiving.wait();
  });
  CHECK(errors[0].template is<pdp::PeerLost>());
  CHECK_THAT(errors[0].what(), Contains("a reason"));
}

TEMPLATE_TEST_CASE("calls may be started together", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp, comm::Any) {
  using Backend = std::conditional_t<std::is_same_v<TestType, comm::Any>, comm::Thread, TestType>;
  check_on_ranks<Backend>(3, [](Backend& backend, Findings& findings) {
    TestType world{std::move(backend)};
    behaviour::started_together(world, findings);
  });
}

TEMPLATE_TEST_CASE("memory that a communicator makes is zero and aligned, and serves any call", "[comm][allocate]", comm::Self,
                   comm::Thread, comm::Shm, comm::Tcp) {
  const int size = std::is_same_v<TestType, comm::Self> ? 1 : GENERATE(1, 2, 3);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::memory(world, findings); });
}

TEMPLATE_TEST_CASE("two groups may be waited for in opposite orders on two ranks", "[comm][async][split]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEMPLATE_TEST_CASE("messages are found by their tag, whatever the order, and wait where nobody expects them yet", "[comm][message]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) { behaviour::tags(world, findings); });
}

TEMPLATE_TEST_CASE("a communicator and its works may be moved while calls are in flight", "[comm][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEMPLATE_TEST_CASE("progress() moves calls to their end without waiting", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::progress(world, findings); });
}

TEMPLATE_TEST_CASE("a rank that comes late keeps the others waiting, and disturbs nothing", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) { behaviour::late_ranks(world, findings); });
}

TEMPLATE_TEST_CASE("a rank that only calls progress() carries its part of a call, so that the other one comes to its end", "[comm][async]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  std::atomic<bool> other_done{false};
  check_on_ranks<TestType>(2, [&](TestType& world, Findings& findings) {
    std::vector<double> values(100'000, 1);
    std::array go{1};
    if (world.rank() == 1) {
      world.recv(go, 0);
      world.all_reduce(values, comm::Sum{});
      other_done = true;
    } else {
      auto work = world.all_reduce_async(values, comm::Sum{});
      world.send(go, 1);
      const auto until = comm::Clock::now() + std::chrono::seconds{15};
      while (!other_done && comm::Clock::now() < until) world.progress();
      findings.expect(other_done, "the end of the other rank's call");
      work.wait();
    }
    findings.expect(values == std::vector<double>(100'000, 2), "the sum");
  });
}
