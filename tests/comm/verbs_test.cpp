#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/values.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "comm/conformance.hpp"

namespace comm = pdp::comm;

TEMPLATE_TEST_CASE("Every verb gives the serial result for every type and operation", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(1, 2, 3, 4, 7, 8);
  if (PDP_TEST_SANITIZED && size != 2 && size != 3 && size != 7) return;
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { conformance::every_call(world, findings); });
}

TEST_CASE("Self: every verb gives the serial result for every type and operation", "[comm]") {
  check_on_ranks<comm::Self>(1, [](comm::Self& world, Findings& findings) {
    conformance::every_call(world, findings);
    comm::Self part = world.split(3, 1);
    findings.expect(part.rank() == 0 && part.size() == 1, "a group of its own");
  });
}

TEST_CASE("Min and Max do not depend on the order of their arguments, also for NaN and signed zeros", "[comm][operation]") {
  const auto same = [](auto operation, auto left, auto right, auto expected) {
    using T = decltype(left);
    using O = decltype(operation);
    for (const T found : {O::combine(left, right), O::combine(right, left)}) CHECK(std::memcmp(&found, &expected, sizeof(T)) == 0);
  };
  const auto of_type = [&]<class T>(T zero) {
    const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN()), minus = static_cast<T>(-static_cast<float>(zero));
    const T one = static_cast<T>(1.0f), two = static_cast<T>(2.0f);
    same(comm::Min{}, one, two, one);
    same(comm::Max{}, one, two, two);
    same(comm::Min{}, zero, minus, minus);
    same(comm::Max{}, zero, minus, zero);
    same(comm::Min{}, nan, one, nan);
    same(comm::Max{}, one, nan, nan);
  };
  of_type(0.0f);
  of_type(0.0);
  of_type(pdp::BFloat16{0.0f});
  of_type(static_cast<pdp::Float16>(0.0f));
  same(comm::Min{}, std::int64_t{-3}, std::int64_t{4}, std::int64_t{-3});
  same(comm::Max{}, std::int8_t{-3}, std::int8_t{4}, std::int8_t{4});
  CHECK(comm::Min::combine(1e-60, 2e-60) == 1e-60);
}

static_assert(comm::RankOrdered<comm::Thread> && comm::RankOrdered<comm::Shm> && !comm::RankOrdered<comm::Tcp>);

TEMPLATE_TEST_CASE("Reductions of ranks that share memory combine in the order of ranks", "[comm]", comm::Thread, comm::Shm) {
  const int size = GENERATE(2, 3, 4, 7);
  const std::size_t count = GENERATE(as<std::size_t>{}, 3, 1001, 20'011);
  std::vector<std::vector<float>> brought;
  for (int rank = 0; rank < size; ++rank) brought.push_back(pdp::testing::normal(count * static_cast<std::size_t>(size), rank));
  auto serial = brought.front();
  for (int rank = 1; rank < size; ++rank)
    std::ranges::transform(serial, brought[static_cast<std::size_t>(rank)], serial.begin(), std::plus{});
  check_on_ranks<TestType>(size, [&](TestType& world, Findings& findings) {
    const auto shard = static_cast<std::size_t>(world.rank());
    const auto& mine = brought[shard];
    auto all = mine, on_root = mine;
    world.all_reduce(all, comm::Sum{});
    findings.expect(all == serial, "all_reduce");
    world.reduce(on_root, comm::Sum{}, size - 1);
    findings.expect(on_root == (world.rank() == size - 1 ? serial : mine), "reduce");
    std::vector<float> part(count);
    world.reduce_scatter(mine, part, comm::Sum{});
    findings.expect(std::equal(part.begin(), part.end(), serial.begin() + static_cast<std::ptrdiff_t>(shard * count)), "reduce_scatter");
  });
}
