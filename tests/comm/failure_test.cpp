#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>

#include <chrono>
#include <vector>

#include "failures.hpp"

namespace comm = pdp::comm;

TEMPLATE_TEST_CASE("Ranks that wait for a rank that has left throw PeerLost naming it", "[comm][failure]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::rank_leaves<TestType>();
}

TEMPLATE_TEST_CASE("A missed deadline throws Timeout with call and missing rank, and Duration::max never expires", "[comm][failure]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  failures::deadline_passes<TestType>();
  failures::no_deadline_passes<TestType>();
}

TEMPLATE_TEST_CASE("Every call of every group throws the reason given to abort", "[comm][failure]", comm::Self, comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::calls_after_failure<TestType>();
}

TEMPLATE_TEST_CASE("Destroying a Work in flight ends the world and names the rank that did it", "[comm][failure][async]", comm::Thread,
                   comm::Shm, comm::Tcp) {
  failures::work_is_let_go<TestType>();
}

TEMPLATE_TEST_CASE("An exception between a call and its wait reaches the other ranks as PeerLost", "[comm][failure][async]", comm::Thread,
                   comm::Shm, comm::Tcp) {
  failures::error_between<TestType>();
}

TEMPLATE_TEST_CASE("A complete Work can be destroyed without wait", "[comm][async]", comm::Self, comm::Thread, comm::Shm, comm::Tcp) {
  failures::complete_work_is_let_go<TestType>();
}

TEST_CASE("Thread::world rejects sizes below 1", "[comm]") {
  CHECK_THROWS_AS(comm::Thread::world(0), pdp::ConfigError);
  CHECK_THROWS_WITH(comm::Thread::world(-1), Contains("a world needs at least 1 rank; -1 were requested"));
}

TEMPLATE_TEST_CASE("Timeout of a call queued behind another one names the missing rank", "[comm][failure]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const auto errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
    std::vector<float> first(8), second(8);
    if (world.rank() == 1) {
      world.recv(first, 0, 3);  // never sent
    } else {
      world.deadline(std::chrono::milliseconds{100});
      auto before = world.broadcast_async(first, 1);
      auto behind = world.broadcast_async(second, 1);
      behind.wait();
    }
  });
  CHECK(errors[0].template is<pdp::Timeout>());
  CHECK_THAT(errors[0].what(), Contains("rank 0 waited 100 ms for broadcast of 8 float32") && Contains("heard nothing from rank 1;"));
}
