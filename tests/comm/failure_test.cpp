#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>

#include <chrono>
#include <vector>

#include "failures.hpp"

namespace comm = pdp::comm;

TEMPLATE_TEST_CASE("a rank that leaves is lost for those who still wait for it, and named", "[comm][failure]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::rank_leaves<TestType>();
}

TEMPLATE_TEST_CASE("a call that takes longer than the deadline is a Timeout that names the call and who is missing", "[comm][failure]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  failures::deadline_passes<TestType>();
  failures::no_deadline_passes<TestType>();
}

TEMPLATE_TEST_CASE("every call after a failure says why there are none any more", "[comm][failure]", comm::Self, comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::calls_after_failure<TestType>();
}

TEMPLATE_TEST_CASE("a work that is let go of in flight ends the world, and touches its memory no more", "[comm][failure][async]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  failures::work_is_let_go<TestType>();
}

TEMPLATE_TEST_CASE("an error between a call and its wait leaves no rank hanging", "[comm][failure][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::error_between<TestType>();
}

TEMPLATE_TEST_CASE("a work that is complete may be let go of without a wait", "[comm][async]", comm::Self, comm::Thread, comm::Shm,
                   comm::Tcp) {
  failures::complete_work_is_let_go<TestType>();
}

TEST_CASE("a world of no ranks is refused", "[comm]") {
  CHECK_THROWS_AS(comm::Thread::world(0), pdp::ConfigError);
  CHECK_THROWS_WITH(comm::Thread::world(-1), Contains("a world of -1 ranks was asked for; it takes at least 1"));
}

TEMPLATE_TEST_CASE("A timeout of a call behind another one names the rank that is missing", "[comm][failure]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const auto errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
    std::vector<float> first(8), second(8);
    if (world.rank() == 1) {
      world.recv(first, 0, 3);  // which never comes
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
