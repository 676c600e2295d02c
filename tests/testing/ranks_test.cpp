#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <set>
#include <tuple>

#include "catch.hpp"

namespace comm = pdp::comm;
namespace testing = pdp::testing;
using namespace std::chrono_literals;

TEMPLATE_TEST_CASE("testing::ranks runs a function on one thread for each rank and returns the results in rank order", "[testing]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(1, 2, 5);
  const auto results = testing::ranks<TestType>(size, [](TestType& world) {
    return std::tuple{world.rank(), world.size(), std::this_thread::get_id()};
  });
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  for (int rank = 0; rank < size; ++rank) {
    const auto& [own, all, thread] = results[static_cast<std::size_t>(rank)];
    CHECK(own == rank);
    CHECK(all == size);
    threads.insert(thread);
  }
  CHECK(threads.size() == static_cast<std::size_t>(size) + 1);
}

TEST_CASE("testing::ranks accepts functions that return void or a move-only type", "[testing]") {
  std::atomic<int> sum{0};
  testing::ranks<comm::Thread>(3, [&](comm::Thread& world) { sum += world.rank() + 1; });
  CHECK(sum == 6);
  const auto results = testing::ranks<comm::Self>(1, [](comm::Self& world) { return std::make_unique<int>(world.size()); });
  CHECK(*results.front() == 1);
}

TEMPLATE_TEST_CASE("testing::ranks rethrows the exception of one rank and ends the other ranks", "[testing]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_MATCHES(testing::ranks<TestType>(3,
                                                [](TestType& world) {
                                                  if (world.rank() == 2) throw pdp::ShapeError{"rank 2 is too wide"};
                                                  for (;;) world.barrier();
                                                }),
                       pdp::ShapeError, Message("rank 2 is too wide"));
  CHECK(std::chrono::steady_clock::now() - start < 2s);
}

TEMPLATE_TEST_CASE("testing::ranks rethrows the original exception even if the failures it causes come first", "[testing]", comm::Thread,
                   comm::Shm, comm::Tcp) {
  struct SlowToLeave {
    ~SlowToLeave() { std::this_thread::sleep_for(50ms); }
  };
  CHECK_THROWS_AS(testing::ranks<TestType>(3,
                                           [](TestType& world) {
                                             const SlowToLeave slow;
                                             std::array<float, 4> values{};
                                             auto work = world.all_reduce_async(values, comm::Sum{});  // destroyed by unwinding
                                             if (world.rank() == 1) throw std::out_of_range{"the cause"};
                                             for (;;) world.barrier();
                                           }),
                  std::out_of_range);
}

TEMPLATE_TEST_CASE("testing::ranks throws Timeout after the deadline if a rank hangs", "[testing]", comm::Thread, comm::Shm, comm::Tcp) {
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(testing::ranks<TestType>(
                      2,
                      [](TestType& world) {
                        std::array<int, 1> value{};
                        while (world.rank() == 1) world.progress();  // it waits for nothing, so deadlock detection cannot find the error
                        world.recv(value, 1);
                      },
                      300ms),
                  pdp::Timeout);
  CHECK(std::chrono::steady_clock::now() - start < 2s);
}

TEST_CASE("testing::errors returns the exception of each rank with its type and message", "[testing]") {
  const auto errors = testing::errors<comm::Thread>(4, [](comm::Thread& world) {
    if (world.rank() == 0) return;
    if (world.rank() == 1) throw pdp::UsageError{"two"};
    if (world.rank() == 2) throw 3;
    throw pdp::PeerLost{7, "gone"};
  });
  REQUIRE(errors.size() == 4);
  CHECK_FALSE(errors[0]);
  CHECK_FALSE(errors[0].is<std::exception>());
  CHECK(errors[0].what() == "nothing was thrown");
  CHECK(errors[1]);
  CHECK(errors[1].is<pdp::UsageError>());
  CHECK(errors[1].is<pdp::ConfigError>());
  CHECK_FALSE(errors[1].is<pdp::ShapeError>());
  CHECK(errors[1].what() == "two");
  CHECK(errors[1].lost_rank() == -1);
  CHECK_THROWS_AS(errors[1].rethrow(), pdp::UsageError);
  CHECK(errors[2].is<int>());
  CHECK(errors[2].what() == "an object that is not a std::exception");
  CHECK(errors[3].lost_rank() == 7);
}

TEST_CASE("testing::ranks rejects a world of 0 ranks, and a world of 2 ranks for Self", "[testing]") {
  const auto nothing = [](auto&) {};
  CHECK_THROWS_WITH(testing::ranks<comm::Thread>(0, nothing), Contains("a world needs at least 1 rank; 0 were requested"));
  CHECK_THROWS_WITH(testing::ranks<comm::Self>(2, nothing), Contains("this communicator is for one rank, but 2 were requested"));
}

TEST_CASE("testing::ranks sets default_deadline unless the caller passes a deadline", "[testing]") {
  CHECK(testing::ranks<comm::Thread>(1, [](comm::Thread& world) { return world.deadline(); }).front() == testing::default_deadline);
  CHECK(testing::ranks<comm::Tcp>(
            2, [](comm::Tcp& world) { return world.deadline(); }, 3s)
            .front() == 3s);
}
