// What every backend must do, on Gloo.
#include <pdp/comm/gloo.hpp>
#include <pdp/testing/values.hpp>

#include "comm/arguments.hpp"
#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/failures.hpp"
#include "thread_sanitizer.hpp"

namespace comm = pdp::comm;
using comm::Gloo;

TEST_CASE("gloo: every verb gives what a serial program gives", "[comm][gloo]") {
  SECTION("in every type and by every operation") {
    const int size = GENERATE(2, 3);
    check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { conformance::every_call(world, findings); });
  }
  SECTION("alone and on many ranks") {
    const int size = GENERATE(1, 4, 7, 8);
    check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) {
      conformance::every_verb<float>(world, findings);
      for (const std::size_t base : {std::size_t{0}, std::size_t{500}, std::size_t{9000}})
        conformance::uneven_shards<float>(world, findings, base);
    });
  }
}

TEST_CASE("gloo: all_reduce leaves the same bits on every rank", "[comm][gloo]") {
  const int size = GENERATE(2, 3, 7);
  const std::size_t elements = GENERATE(as<std::size_t>{}, 255, 4097, 300'007);
  const auto results = pdp::testing::ranks<Gloo>(size, [&](Gloo& world) {
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

TEST_CASE("gloo: a split makes groups that live on their own", "[comm][gloo][split]") {
  const int size = GENERATE(1, 4, 7);
  check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEST_CASE("gloo: works may be waited for in any order", "[comm][gloo][async]") {
  const int size = GENERATE(2, 3, 4);
  check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEST_CASE("gloo: whoever only looks whether a work is done sees it end", "[comm][gloo][async]") {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 1, 300'007);
  check_on_ranks<Gloo>(3, [elements](Gloo& world, Findings& findings) { behaviour::looks(world, findings, elements); });
}

TEST_CASE("gloo: two messages that are looked at in turns are both seen to end", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) {
    std::array first{0}, second{0};
    const std::array mine{world.rank() + 1};
    const int other = 1 - world.rank();
    auto one = world.recv_async(first, other, 1), two = world.recv_async(second, other, 2);
    findings.expect(!one.done() && !two.done(), "nothing is complete before it was sent");
    world.barrier();
    auto late = world.send_async(mine, other, 2);
    while (!two.done()) static_cast<void>(one.done());
    findings.expect(!one.done(), "the message that nobody has sent");
    world.barrier();
    two.wait();
    world.send(mine, other, 1);
    one.wait();
    late.wait();
    findings.expect(first[0] == other + 1 && second[0] == other + 1, "both messages");
  });
}

TEST_CASE("gloo: calls may be started together", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::started_together(world, findings); });
}

TEST_CASE("gloo: memory that a communicator makes serves any call", "[comm][gloo][allocate]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::memory(world, findings); });
}

TEST_CASE("gloo: two groups may be waited for in opposite orders on two ranks", "[comm][gloo][async][split]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEST_CASE("gloo: messages are found by their tag, whatever the order", "[comm][gloo][message]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::tags(world, findings); });
}

TEST_CASE("gloo: a communicator and its works may be moved while calls are in flight", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEST_CASE("gloo: a rank that comes late keeps the others waiting, and disturbs nothing", "[comm][gloo]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::late_ranks(world, findings); });
}

TEST_CASE("gloo: a call that cannot be right on its own is refused at once, and the world goes on", "[comm][gloo][argument]") {
  arguments::wrong_ones_are_refused<Gloo>();
}

TEST_CASE("gloo: a rank that leaves is lost for those who still wait for it, and named", "[comm][gloo][failure]") {
  failures::rank_leaves<Gloo>();
}

TEST_CASE("gloo: a call that takes longer than the deadline is a Timeout that names the call and who is missing", "[comm][gloo][failure]") {
  failures::deadline_passes<Gloo>();
  failures::no_deadline_passes<Gloo>();
}

TEST_CASE("gloo: every call after a failure says why there are none any more", "[comm][gloo][failure]") {
  failures::calls_after_failure<Gloo>();
}

TEST_CASE("gloo: a work that is let go of in flight ends the world, and touches its memory no more", "[comm][gloo][failure][async]") {
  failures::work_is_let_go<Gloo>();
}

TEST_CASE("gloo: an error between a call and its wait leaves no rank hanging", "[comm][gloo][failure][async]") {
  failures::error_between<Gloo>();
}

TEST_CASE("gloo: a work that is complete may be let go of without a wait", "[comm][gloo][async]") {
  failures::complete_work_is_let_go<Gloo>();
}
