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

TEMPLATE_TEST_CASE("all_reduce gives the sum over ranks with equal bits on every rank", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
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

TEMPLATE_TEST_CASE("split makes groups that are ordered by key and communicate on their own", "[comm][split]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const int size = GENERATE(1, 4, 7);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEMPLATE_TEST_CASE("Works can be waited for in a different order on each rank", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(2, 3, 4);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEMPLATE_TEST_CASE("Polling Work::done brings a call to completion", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 1, 300'007);
  check_on_ranks<TestType>(3, [elements](TestType& world, Findings& findings) { behaviour::looks(world, findings, elements); });
}

TEMPLATE_TEST_CASE("Work::done returns true after a failure, and wait throws the reason", "[comm][async]", comm::Thread, comm::Shm,
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

TEMPLATE_TEST_CASE("grouped starts messages in both directions together", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp, comm::Any) {
  using Backend = std::conditional_t<std::is_same_v<TestType, comm::Any>, comm::Thread, TestType>;
  check_on_ranks<Backend>(3, [](Backend& backend, Findings& findings) {
    TestType world{std::move(backend)};
    behaviour::started_together(world, findings);
  });
}

TEMPLATE_TEST_CASE("allocate returns zeroed, aligned memory that all_reduce accepts", "[comm][allocate]", comm::Self, comm::Thread,
                   comm::Shm, comm::Tcp) {
  const int size = std::is_same_v<TestType, comm::Self> ? 1 : GENERATE(1, 2, 3);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { behaviour::memory(world, findings); });
}

TEMPLATE_TEST_CASE("Works of two groups can be waited for in opposite orders on two ranks", "[comm][async][split]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEMPLATE_TEST_CASE("Receives match messages by tag in any order, and equal tags keep the order of sends", "[comm][message]", comm::Thread,
                   comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) { behaviour::tags(world, findings); });
}

TEMPLATE_TEST_CASE("A communicator and its Works can be moved while calls are in flight", "[comm][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEMPLATE_TEST_CASE("Alternating progress and Work::done completes a call without wait", "[comm][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) { behaviour::progress(world, findings); });
}

TEMPLATE_TEST_CASE("A late rank delays the others and changes no result", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) { behaviour::late_ranks(world, findings); });
}

TEMPLATE_TEST_CASE("progress on one rank lets the other rank complete a call", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
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
