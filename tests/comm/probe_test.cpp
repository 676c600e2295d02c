#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/probe_log.hpp>
#include <pdp/comm/message/stream/probe_frame.hpp>
#include <pdp/comm/thread/transport.hpp>

#include <chrono>
#include <cstddef>

#include "catch.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;
using comm::Probe;

namespace probe_test {

comm::Envelope call() {
  return {.channel = 7, .sequence = 3, .count = 8, .root = 2, .verb = comm::Verb::broadcast, .type = pdp::DType::float32};
}

}  // namespace probe_test

TEST_CASE("probe_of restores a probe from its frame", "[comm][probe]") {
  for (const auto kind : {Probe::Kind::receive, Probe::Kind::send, Probe::Kind::meeting}) {
    const Probe probe{
        .kind = kind, .initiator = 70'000, .attempt = 9, .ranks = 12, .call = probe_test::call(), .received = std::uint64_t{1} << 40};
    const auto back = comm::stream::probe_of(comm::stream::frame_of(probe));
    REQUIRE(back);
    CHECK(back->kind == kind);
    CHECK(back->initiator == 70'000);
    CHECK(back->attempt == 9);
    CHECK(back->ranks == 12);
    CHECK(back->call == probe_test::call());
    CHECK(back->received == std::uint64_t{1} << 40);
  }
}

TEST_CASE("probe_of rejects a frame that does not hold a probe", "[comm][probe]") {
  comm::stream::Frame frame = comm::stream::frame_of({.call = probe_test::call()});
  frame.envelope.reserved = 3;
  CHECK_FALSE(comm::stream::probe_of(frame));
  frame.envelope.reserved = 0;
  frame.length = 1;
  CHECK_FALSE(comm::stream::probe_of(frame));
}

TEST_CASE("ProbeLog sends a probe after 200 ms of a wait and then in doubling intervals", "[comm][probe]") {
  comm::ProbeLog log{4};
  const comm::TimePoint start{1h};
  log.begin(start);
  CHECK_FALSE(log.due(start + 199ms));
  CHECK(log.due(start + 200ms) == 1u);
  CHECK_FALSE(log.due(start + 599ms));
  CHECK(log.due(start + 600ms) == 2u);
  CHECK_FALSE(log.due(start + 1399ms));
  CHECK(log.due(start + 1400ms) == 3u);
  log.begin(start + 5s);
  CHECK(log.due(start + 5s + 200ms) == 4u);
}

TEST_CASE("ProbeLog::is_valid accepts only probes of the current wait", "[comm][probe]") {
  comm::ProbeLog log{4};
  log.begin(comm::TimePoint{1h});
  CHECK_FALSE(log.is_valid({.attempt = 1}));
  CHECK(log.due(comm::TimePoint{2h}) == 1u);
  CHECK(log.is_valid({.attempt = 1}));
  log.begin(comm::TimePoint{3h});  // a message has moved, so a new wait begins
  CHECK_FALSE(log.is_valid({.attempt = 1}));
}

TEST_CASE("ProbeLog forwards the probe of an attempt only once for each call", "[comm][probe]") {
  comm::ProbeLog log{4};
  const int one = 0, other = 0;
  const auto passes = [&](std::uint32_t attempt, const int& call, int initiator = 2) {
    return log.passes({.initiator = initiator, .attempt = attempt}, &call);
  };
  CHECK(passes(1, one));
  CHECK_FALSE(passes(1, one));
  CHECK(passes(1, other));
  CHECK_FALSE(passes(1, other));
  CHECK(passes(1, one, 3));
  CHECK(passes(2, one));
  CHECK_FALSE(passes(1, other));
}

TEST_CASE("deadlock names both ranks and both calls", "[comm][probe]") {
  const comm::Envelope message{.count = 8, .tag = 5, .verb = comm::Verb::send, .type = pdp::DType::float32};
  const comm::ReceivedProbe back{{.initiator = 1, .ranks = 3, .call = probe_test::call()}, 4};
  const comm::Failure failure = comm::deadlock(back, Probe::Kind::receive, message, 2);
  CHECK(failure.kind == comm::Failure::Kind::mismatch);
  CHECK_THAT(failure.message, Contains("3 ranks wait for each other in a cycle: rank 1 for rank 2 (receive of 8 float32 with tag 5), and "
                                       "rank 4 for rank 1 (broadcast of 8 float32 with root 2)"));
}

TEST_CASE("ThreadTransport takes a probe only if its message is still waiting for a receive", "[comm][probe]") {
  auto world = comm::ThreadTransport::world(2);
  const comm::Envelope first{.count = 1, .bytes = 1, .tag = 1, .verb = comm::Verb::send, .type = pdp::DType::byte};
  comm::Envelope second = first;
  second.tag = 2;
  std::byte from{7}, into{}, never{};
  comm::ReceiveRequest expected{.envelope = first, .data = &into, .peer = 0}, awaited{.envelope = second, .data = &never, .peer = 0};
  world[1].post(expected);
  world[1].post(awaited);
  CHECK_FALSE(world[1].progress());

  // Rank 0 sends the first message and a probe before rank 1 polls again.
  comm::SendRequest sent{.envelope = first, .data = &from, .peer = 1};
  world[0].post(sent);
  world[0].send_probe({.kind = Probe::Kind::send, .initiator = 0, .attempt = 1, .call = first}, 1, &sent);
  CHECK_FALSE(world[1].take_probe());
  CHECK(world[1].progress());
  CHECK(into == from);
  CHECK_FALSE(world[1].take_probe());  // its message has arrived

  // Rank 1 must answer a probe about a message that has no receive.
  comm::Envelope third = first;
  third.tag = 3;
  comm::SendRequest stuck{.envelope = third, .data = &from, .peer = 1};
  world[0].post(stuck);
  world[0].send_probe({.kind = Probe::Kind::send, .initiator = 0, .attempt = 2, .call = third}, 1, &stuck);
  CHECK_FALSE(world[1].progress());
  CHECK(world[1].take_probe());
}
