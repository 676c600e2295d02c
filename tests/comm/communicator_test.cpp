#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/values.hpp>

#include <array>

#include "findings.hpp"

namespace comm = pdp::comm;
using pdp::text;

TEMPLATE_TEST_CASE("all_reduce leaves the sum over ranks, with the same bits on every rank", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(2, 3, 7);
  const std::size_t elements = GENERATE(as<std::size_t>{}, 255, 4096, 4097, 300'007);

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

TEMPLATE_TEST_CASE("a split makes groups that live on their own", "[comm][split]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(1, 4, 7);
  check_on_ranks<TestType>(size, [size](TestType& world, Findings& findings) {
    const int rank = world.rank();
    TestType parity = world.split(rank % 2, /*key, reversed*/ -rank);
    const int members = (size - rank % 2 + 1) / 2;
    findings.expect(parity.size() == members, "size of a half");
    findings.expect(parity.rank() == members - 1 - rank / 2, "ranks in the order of keys");
    std::vector<int> gathered(static_cast<std::size_t>(members));
    parity.all_gather(std::array{rank}, gathered);
    findings.expect(std::ranges::is_sorted(gathered, std::greater{}) && gathered.front() % 2 == rank % 2, "members of a half");

    TestType alone = world.split(rank, 0);
    std::array sum{rank};
    alone.all_reduce(sum, comm::Sum{});
    findings.expect(alone.size() == 1 && sum[0] == rank, "a group of one");

    TestType all = parity.split(0, parity.rank());
    TestType same = world.split(7, 0);
    findings.expect(all.size() == members && same.size() == size && same.rank() == rank, "groups of groups, and of all");
    sum = {1};
    same.all_reduce(sum, comm::Sum{});
    findings.expect(sum[0] == size, "a sum over all");
    const int peer = parity.rank() ^ 1;
    if (peer < parity.size()) {  // a message within a half names ranks of the half
      std::array mine{rank}, theirs{-1};
      auto sending = parity.send_async(mine, peer);
      parity.recv(theirs, peer);
      sending.wait();
      findings.expect(theirs[0] == gathered[static_cast<std::size_t>(peer)], "a message within a group");
    }
  });
}

TEMPLATE_TEST_CASE("works may be waited for in any order", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  const int size = GENERATE(2, 3, 4);
  check_on_ranks<TestType>(size, [size](TestType& world, Findings& findings) {
    constexpr std::size_t calls = 12;
    std::vector<std::vector<std::int64_t>> sums;
    for (std::size_t call = 0; call < calls; ++call) sums.emplace_back(call % 3 == 0 ? 10'000 : call + 1, 1 + static_cast<int>(call));
    for (int round = 0; round < 3; ++round) {
      std::vector<typename TestType::Work> works(calls);
      for (std::size_t call = 0; call < calls; ++call) works[call] = world.all_reduce_async(sums[call], comm::Max{});
      for (std::size_t i = 0; i < calls; ++i) {  // another order on every rank
        auto& work = works[(i * 5 + static_cast<std::size_t>(world.rank())) % calls];
        findings.expect(work.pending(), "a work that nobody has waited for is pending");
        work.wait();
        work.wait();  // a second time does nothing
        findings.expect(!work.pending(), "a work that was waited for is not pending");
      }
    }
    for (std::size_t call = 0; call < calls; ++call)
      findings.expect(sums[call].back() == 1 + static_cast<int>(call), text("result of call ", call, " of ", size, " ranks"));
  });
}

TEMPLATE_TEST_CASE("two groups may be waited for in opposite orders on two ranks", "[comm][async][split]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) {
    TestType one = world.split(0, 0), two = world.split(0, 0);
    std::vector<float> first(50'000, 1), second(50'000, 2);
    for (int round = 0; round < 5; ++round) {
      auto a = one.all_reduce_async(first, comm::Average{});
      auto b = two.all_reduce_async(second, comm::Average{});
      if (world.rank() == 0) {
        a.wait();
        b.wait();
      } else {
        b.wait();
        a.wait();
      }
    }
    // Blocking calls of two groups, which a rank starts only after another, still need one order; so the world comes last for both.
    world.barrier();
    findings.expect(first == std::vector<float>(50'000, 1) && second == std::vector<float>(50'000, 2), "averages of equal values");
  });
}

TEMPLATE_TEST_CASE("messages are found by their tag, whatever the order, and wait where nobody expects them yet", "[comm][message]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) {
    constexpr int tags = 20;
    constexpr std::size_t large = 100'000;
    if (world.rank() == 0) {
      std::vector<std::vector<int>> payloads;
      for (int tag = 0; tag < tags; ++tag) payloads.emplace_back(tag % 4 == 0 ? large : static_cast<std::size_t>(tag), tag);
      std::vector<typename TestType::Work> sending;
      for (int peer : {1, 2})
        for (int tag = 0; tag < tags; ++tag) sending.push_back(world.send_async(payloads[static_cast<std::size_t>(tag)], peer, tag));
      for (auto& each : sending) each.wait();
    } else {
      for (int i = 0; i < tags; ++i) {
        const int tag = world.rank() == 1 ? tags - 1 - i : (i * 7) % tags;
        std::vector<int> received(tag % 4 == 0 ? large : static_cast<std::size_t>(tag), -1);
        world.recv(received, 0, tag);
        findings.expect(received == std::vector<int>(received.size(), tag), text("the message with tag ", tag));
      }
    }
    // Those of one pair and tag keep their order; and collectives pass between messages that are in flight.
    std::array<int, 3> sent{10, 11, 12}, got{};
    std::array<typename TestType::Work, 6> works;
    const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
    for (std::size_t i = 0; i < 3; ++i) works[i] = world.send_async(std::span{&sent[i], 1}, right, 5);
    std::array sum{1};
    world.all_reduce(sum, comm::Sum{});
    for (std::size_t i = 0; i < 3; ++i) works[3 + i] = world.recv_async(std::span{&got[i], 1}, left, 5);
    for (std::size_t i = 6; i-- > 0;) works[i].wait();
    findings.expect(got == sent && sum[0] == 3, "order of messages with one tag");
  });
}

TEMPLATE_TEST_CASE("a communicator and its works may be moved while calls are in flight", "[comm][async]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) {
    std::vector<float> values(10'000, 1);
    auto work = world.all_reduce_async(values, comm::Sum{});
    TestType moved{std::move(world)};
    auto same = std::move(work);
    findings.expect(!work.pending() && same.pending(), "the work has moved");  // NOLINT(bugprone-use-after-move)
    typename TestType::Work assigned;
    findings.expect(!assigned.pending(), "a new work waits for nothing");
    assigned.wait();
    assigned = std::move(same);
    assigned.wait();
    world = std::move(moved);
    TestType part = world.split(0, 0);
    part = world.split(0, 1);  // lets go of the first one
    part.all_reduce(values, comm::Sum{});
    findings.expect(values == std::vector<float>(10'000, 4), "two sums over two ranks");
  });
}

TEMPLATE_TEST_CASE("progress() moves calls to their end without waiting", "[comm][async]", comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(2, [](TestType& world, Findings& findings) {
    std::vector<double> values(100'000, 1);
    auto work = world.all_reduce_async(values, comm::Sum{});
    const auto until = comm::Clock::now() + std::chrono::seconds{20};
    while (values.back() != 2 && comm::Clock::now() < until) world.progress();
    for (int i = 0; i < 100; ++i) world.progress();  // what the other rank may still need
    work.wait();
    findings.expect(values == std::vector<double>(100'000, 2), "the sum");
  });
}

TEMPLATE_TEST_CASE("a rank that comes late keeps the others waiting, and disturbs nothing", "[comm]", comm::Thread, comm::Shm, comm::Tcp) {
  check_on_ranks<TestType>(3, [](TestType& world, Findings& findings) {
    std::vector<double> values(200'000, 1);
    for (int round = 0; round < 3; ++round) {
      if (world.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds{250});
      const std::array<double, 2> sent{1, 2};
      std::array<double, 2> received{};
      auto message = world.send_async(sent, (world.rank() + 1) % 3);
      world.all_reduce(values, comm::Average{});
      world.recv(received, (world.rank() + 2) % 3);
      message.wait();
      findings.expect(received == sent, "the message");
    }
    findings.expect(values == std::vector<double>(200'000, 1), "averages of equal values");
  });
}
