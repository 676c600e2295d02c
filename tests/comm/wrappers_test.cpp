#include <pdp/comm/any.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>

#include "comm/conformance.hpp"

namespace comm = pdp::comm;

TEST_CASE("a communicator of any backend does what the backend does", "[comm][any]") {
  const int size = GENERATE(1, 2, 3);
  check_on_ranks<comm::Thread>(size, [](comm::Thread& world, Findings& findings) {
    comm::Any any{std::move(world)};
    conformance::every_verb<float>(any, findings);
    conformance::uneven_shards<std::int32_t>(any, findings, 3);
    comm::Any part = any.split(any.rank() % 2, 0);
    std::array sum{1};
    part.all_reduce(sum, comm::Sum{});
    findings.expect(sum[0] == part.size() && part.size() == (any.size() + 1 - any.rank() % 2) / 2, "a group");
  });
}

TEST_CASE("the work of any backend may be moved, and waits once", "[comm][any][async]") {
  check_on_ranks<comm::Thread>(2, [](comm::Thread& world, Findings& findings) {
    comm::Any any{std::move(world)};
    std::array<float, 2> first{1, 2}, second{3, 4};
    std::vector<comm::Any::Work> works;
    findings.expect(!comm::Any::Work{}.pending(), "a new work waits for nothing");
    comm::Any::Work{}.wait();
    works.push_back(any.all_reduce_async(first, comm::Sum{}));
    works.push_back(any.all_reduce_async(second, comm::Sum{}));
    comm::Any::Work moved = std::move(works[0]);
    findings.expect(moved.pending() && !works[0].pending(), "the work has moved");
    works[0] = std::move(moved);
    for (auto& work : works) {
      work.wait();
      work.wait();
      findings.expect(!work.pending(), "a work that was waited for is not pending");
    }
    findings.expect(first == std::array<float, 2>{2, 4} && second == std::array<float, 2>{6, 8}, "sums");
  });
}

TEST_CASE("a failure passes through any as it is, and a work that is let go of ends the world", "[comm][any][failure]") {
  const auto errors = pdp::testing::errors<comm::Thread>(2, [](comm::Thread& world) {
    comm::Any any{std::move(world)};
    std::array<float, 2> values{};
    if (any.rank() == 0)
      static_cast<void>(any.all_reduce_async(values, comm::Sum{}));
    else
      any.recv(values, 0);
    any.barrier();
  });
  for (const auto& error : errors) CHECK(error.lost_rank() == 0);
}

TEST_CASE("an instrumented communicator counts calls and bytes of each verb, those of its groups included", "[comm][instrumented]") {
  check_on_ranks<comm::Thread>(3, [](comm::Thread& world, Findings& findings) {
    comm::Instrumented counted{std::move(world)};
    std::array<float, 10> values{};
    counted.all_reduce(values, comm::Sum{});
    counted.all_reduce_async(values, comm::Max{}).wait();
    std::vector<double> whole(6);
    counted.all_gather(std::array{1.0, 2.0}, whole);
    counted.all_gather(std::vector<double>(counted.rank() == 0 ? 6 : 0), whole, std::array<std::size_t, 3>{6, 0, 0});
    comm::Instrumented part = counted.split(counted.rank() == 0 ? 0 : 1, 0);
    if (part.size() == 2) part.send_recv(std::array{1, 2, 3}, 1 - part.rank(), std::vector<int>(3), 1 - part.rank());

    const auto is = [&](comm::Verb verb, std::uint64_t calls, std::uint64_t bytes) {
      const comm::Traffic& traffic = counted.traffic(verb);
      findings.expect(traffic.calls == calls && traffic.bytes == bytes && (calls == 0) == (traffic.time == comm::Duration{}),
                      pdp::text(comm::name(verb), ": ", traffic.calls, " calls, ", traffic.bytes, " bytes"));
    };
    is(comm::Verb::all_reduce, 2, 80);
    is(comm::Verb::all_gather, 2, 96);
    is(comm::Verb::send, counted.rank() == 0 ? 0 : 1, counted.rank() == 0 ? 0 : 24);
    is(comm::Verb::broadcast, 0, 0);
    counted.clear_traffic();
    is(comm::Verb::all_reduce, 0, 0);
    counted.barrier();
    conformance::every_verb<float>(counted, findings);
  });
}

TEST_CASE("wrappers go around each other", "[comm][any][instrumented]") {
  check_on_ranks<comm::Thread>(2, [](comm::Thread& world, Findings& findings) {
    comm::Any any{comm::Instrumented{std::move(world)}};
    conformance::uneven_shards<float>(any, findings, 1);
    comm::Instrumented counted{std::move(any)};
    conformance::uneven_shards<float>(counted, findings, 1);
    findings.expect(counted.traffic(comm::Verb::all_gather).calls == 2, "calls through both");
  });
}
