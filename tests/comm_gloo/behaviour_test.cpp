// Runs the tests of all backends on Gloo.
#include <pdp/comm/gloo.hpp>
#include <pdp/testing/values.hpp>

#include "comm/arguments.hpp"
#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/failures.hpp"
#include "thread_sanitizer.hpp"

namespace comm = pdp::comm;
using comm::Gloo;

TEST_CASE("Gloo: every verb gives the serial result", "[comm][gloo]") {
  SECTION("for every type and operation on 2 and 3 ranks") {
    const int size = GENERATE(2, 3);
    check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { conformance::every_call(world, findings); });
  }
  SECTION("for float and uneven shards on 1 to 8 ranks") {
    const int size = GENERATE(1, 4, 7, 8);
    check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) {
      conformance::every_verb<float>(world, findings);
      for (const std::size_t base : {std::size_t{0}, std::size_t{500}, std::size_t{9000}})
        conformance::uneven_shards<float>(world, findings, base);
    });
  }
}

TEST_CASE("Gloo: all_reduce gives the sum over ranks with equal bits on every rank", "[comm][gloo]") {
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

TEST_CASE("Gloo: split makes groups that are ordered by key and communicate on their own", "[comm][gloo][split]") {
  const int size = GENERATE(1, 4, 7);
  check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEST_CASE("Gloo: Works can be waited for in a different order on each rank", "[comm][gloo][async]") {
  const int size = GENERATE(2, 3, 4);
  check_on_ranks<Gloo>(size, [](Gloo& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEST_CASE("Gloo: polling Work::done brings a call to completion", "[comm][gloo][async]") {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 1, 300'007);
  check_on_ranks<Gloo>(3, [elements](Gloo& world, Findings& findings) { behaviour::looks(world, findings, elements); });
}

TEST_CASE("Gloo: Work::done, polled alternately on two receives, is true only if the message has arrived", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) {
    std::array first{0}, second{0};
    const std::array mine{world.rank() + 1};
    const int other = 1 - world.rank();
    auto one = world.recv_async(first, other, 1), two = world.recv_async(second, other, 2);
    findings.expect(!one.done() && !two.done(), "nothing is complete before it was sent");
    world.barrier();
    auto late = world.send_async(mine, other, 2);
    while (!two.done()) static_cast<void>(one.done());
    findings.expect(!one.done(), "the message that was not sent");
    world.barrier();
    two.wait();
    world.send(mine, other, 1);
    one.wait();
    late.wait();
    findings.expect(first[0] == other + 1 && second[0] == other + 1, "both messages");
  });
}

TEST_CASE("Gloo: grouped starts messages in both directions together", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::started_together(world, findings); });
}

TEST_CASE("Gloo: allocate returns zeroed, aligned memory that all_reduce accepts", "[comm][gloo][allocate]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::memory(world, findings); });
}

TEST_CASE("Gloo: Works of two groups can be waited for in opposite orders on two ranks", "[comm][gloo][async][split]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEST_CASE("Gloo: receives match messages by tag in any order, and equal tags keep the order of sends", "[comm][gloo][message]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::tags(world, findings); });
}

TEST_CASE("Gloo: a communicator and its Works can be moved while calls are in flight", "[comm][gloo][async]") {
  check_on_ranks<Gloo>(2, [](Gloo& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEST_CASE("Gloo: a late rank delays the others and changes no result", "[comm][gloo]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) { behaviour::late_ranks(world, findings); });
}

TEST_CASE("Gloo: a call with invalid arguments throws at once, and the world remains usable", "[comm][gloo][argument]") {
  arguments::wrong_ones_are_refused<Gloo>();
}

TEST_CASE("Gloo: ranks that wait for a rank that has left throw PeerLost naming it", "[comm][gloo][failure]") {
  failures::rank_leaves<Gloo>();
}

TEST_CASE("Gloo: a missed deadline throws Timeout with call and missing rank, and Duration::max never expires", "[comm][gloo][failure]") {
  failures::deadline_passes<Gloo>();
  failures::no_deadline_passes<Gloo>();
}

TEST_CASE("Gloo: every call of every group throws the reason given to abort", "[comm][gloo][failure]") {
  failures::calls_after_failure<Gloo>();
}

TEST_CASE("Gloo: destroying a Work in flight ends the world and names the rank that did it", "[comm][gloo][failure][async]") {
  failures::work_is_let_go<Gloo>();
}

TEST_CASE("Gloo: an exception between a call and its wait reaches the other ranks as PeerLost", "[comm][gloo][failure][async]") {
  failures::error_between<Gloo>();
}

TEST_CASE("Gloo: a complete Work can be destroyed without wait", "[comm][gloo][async]") { failures::complete_work_is_let_go<Gloo>(); }
