#include <pdp/comm/any.hpp>
#include <pdp/comm/checked.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <functional>

#include "comm/conformance.hpp"

namespace comm = pdp::comm;

static_assert(comm::Communicator<comm::Checked<comm::Thread>> && comm::FailsFast<comm::Checked<comm::Thread>>);
static_assert(comm::HasReduceScatter<comm::Instrumented<comm::Any>> && !comm::FailsFast<comm::Any>,
              "Any does not know the properties of the backend that it holds");

TEST_CASE("Any gives the serial results of the backend that it holds", "[comm][any]") {
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

TEST_CASE("Any::Work can be moved, and a second wait does nothing", "[comm][any][async]") {
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

TEST_CASE("Any: destroying a Work in flight ends the world and names the rank that did it", "[comm][any][failure]") {
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

TEST_CASE("Instrumented counts calls and bytes of each verb, including those of its groups", "[comm][instrumented]") {
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

TEST_CASE("Checked gives the serial results of its backend", "[comm][checked]") {
  check_on_ranks<comm::Thread>(3, [](comm::Thread& world, Findings& findings) {
    comm::Checked checked{std::move(world)};
    conformance::every_verb<float>(checked, findings);
    conformance::uneven_shards<std::int64_t>(checked, findings, 2);
    comm::Checked part = checked.split(checked.rank() == 2 ? 1 : 0, 0);
    std::array sum{1};
    part.all_reduce(sum, comm::Sum{});
    findings.expect(sum[0] == part.size(), "a group");
  });
}

TEST_CASE("Checked throws MismatchedCollective with both calls on every rank, also in later calls", "[comm][checked][mismatch]") {
  using Checked = comm::Checked<comm::Thread>;
  struct Fault {
    std::function<void(Checked&)> on_rank_0, on_others;
    std::string words;
  };
  static std::array<float, 12> v;
  const std::array<std::size_t, 3> counts{1, 2, 1}, others{2, 1, 1};
  const auto share = [](const auto& table, const Checked& world) {
    return std::span{v}.first(table[static_cast<std::size_t>(world.rank())]);
  };
  const std::vector<Fault> faults{
      {[](Checked& world) { world.barrier(); }, [](Checked& world) { world.broadcast(std::span{v}.first(4), 1); },
       "barrier on rank 0 (call 1 of its group), broadcast of 4 float32 with root 1 on rank 1"},
      {[](Checked& world) { world.reduce(std::array{1.0f}, comm::Sum{}, 0); },
       [](Checked& world) { world.reduce(std::array{1.0f}, comm::Max{}, 0); }, "reduce of 1 float32 with root 0 on rank 0"},
      {[](Checked& world) { world.all_reduce(std::array{1.0f}, comm::Sum{}); },
       [](Checked& world) { world.all_reduce(std::array{1}, comm::Sum{}); }, "all_reduce of 1 int32 on rank 1"},
      {[](Checked& world) { static_cast<void>(world.split(0, 0)); }, [](Checked& world) { world.barrier(); },
       "split on rank 0 (call 1 of its group), barrier on rank 1"},
      {[&](Checked& world) { world.all_gather(share(counts, world), std::vector<float>(4), counts); },
       [&](Checked& world) { world.all_gather(share(others, world), std::vector<float>(4), others); },
       "ranks of one group passed different counts to one call: all_gather of 4 float32 on rank 0 and on rank 1"}};
  for (const Fault& fault : faults) {
    const auto errors = pdp::testing::errors<comm::Thread>(3, [&](comm::Thread& world) {
      Checked checked{std::move(world)};
      std::string first;
      try {
        (checked.rank() == 0 ? fault.on_rank_0 : fault.on_others)(checked);
      } catch (const pdp::MismatchedCollective& error) {
        first = error.what();
      }
      try {
        checked.send(std::array{1.0f}, (checked.rank() + 1) % 3);
      } catch (const pdp::MismatchedCollective& error) {
        throw std::runtime_error{first == error.what() ? first : "the second call says something else"};
      }
    });
    for (const auto& error : errors) CHECK_THAT(error.what(), Contains(fault.words));
  }
}

TEST_CASE("Checked names ranks by their numbers in the world, also in a group", "[comm][checked][mismatch]") {
  const auto errors = pdp::testing::errors<comm::Thread>(4, [](comm::Thread& world) {
    comm::Checked checked{std::move(world)};
    comm::Checked part = checked.split(checked.rank() / 2, -checked.rank());  // ranks 1, 0 and ranks 3, 2
    if (checked.rank() < 2) return;
    part.broadcast(std::array<float, 2>{}, checked.rank() - 2);
  });
  for (const std::size_t rank : {2u, 3u})
    CHECK_THAT(errors[rank].what(), Contains("broadcast of 2 float32 with root 1 on rank 3") && Contains("with root 0 on rank 2"));
}

TEST_CASE("Any and Instrumented can wrap each other", "[comm][any][instrumented]") {
  check_on_ranks<comm::Thread>(2, [](comm::Thread& world, Findings& findings) {
    comm::Any any{comm::Instrumented{std::move(world)}};
    conformance::uneven_shards<float>(any, findings, 1);
    comm::Instrumented counted{std::move(any)};
    conformance::uneven_shards<float>(counted, findings, 1);
    findings.expect(counted.traffic(comm::Verb::all_gather).calls == 2, "calls through both");
  });
}
