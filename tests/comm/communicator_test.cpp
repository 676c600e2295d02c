#include <pdp/comm/self.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/values.hpp>

#include <array>
#include <numeric>
#include <set>

#include "findings.hpp"

namespace comm = pdp::comm;
using pdp::text;

// Every verb, on every backend, type and operation, against a serial reference. Values are small whole numbers, which every type holds
// exactly, so that results do not depend on the order of additions. A world is made once for many calls.

namespace {

template <class T>
using Number = typename comm::detail::Arithmetic<T>::type;

/// Element `i` of what a rank brings: 1 to 7, and mostly 1 where many are multiplied.
template <class T>
T value(int rank, std::size_t i, comm::Reduction reduction) {
  const std::size_t mixed = i * 5 + static_cast<std::size_t>(rank) * 3 + i / 7;
  return static_cast<T>(static_cast<Number<T>>(reduction == comm::Reduction::product ? (mixed % 3 == 0 ? 2 : 1) : mixed % 7 + 1));
}
template <class T>
std::vector<T> values(int rank, std::size_t count, comm::Reduction reduction = comm::Reduction::none) {
  std::vector<T> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = value<T>(rank, i, reduction);
  return made;
}

template <class T, class O>
std::vector<T> reduced(int size, std::size_t count, O) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto total = static_cast<Number<T>>(value<T>(0, i, O::reduction));
    for (int rank = 1; rank < size; ++rank) total = O::combine(total, static_cast<Number<T>>(value<T>(rank, i, O::reduction)));
    if (O::reduction == comm::Reduction::average) total = static_cast<Number<T>>(total / static_cast<Number<T>>(size));
    result[i] = static_cast<T>(total);
  }
  return result;
}

template <class T>
std::vector<T> shard_of(const std::vector<T>& whole, int rank, std::size_t count) {
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

std::set<int> roots(int size) { return {0, size / 2, size - 1}; }

/// Both forms of a call: blocking, and in flight while another of the same group is.
template <class Blocking, class Async>
void both(Findings& findings, const std::string& what, Blocking&& blocking, Async&& async) {
  findings.expect(blocking(), what);
  findings.expect(async(), what + ", asynchronous");
}

template <class T, class Comm, class O>
void reductions(Comm& world, Findings& findings, std::size_t count, O operation) {
  const int size = world.size(), rank = world.rank();
  const std::string what = text(" (", comm::name(O::reduction), ") of ", count, " ", pdp::name(pdp::dtype_of<T>));
  const std::vector<T> mine = values<T>(rank, count, O::reduction), expected = reduced<T>(size, count, operation);

  both(
      findings, "all_reduce" + what,
      [&] {
        std::vector<T> in_place = mine;
        world.all_reduce(in_place, operation);
        return in_place == expected;
      },
      [&] {
        std::vector<T> in_place = mine, other = mine;
        auto first = world.all_reduce_async(in_place, operation), second = world.all_reduce_async(other, operation);
        second.wait();
        first.wait();
        return in_place == expected && other == expected;
      });
  for (const int root : roots(size)) {
    const std::vector<T>& result = rank == root ? expected : mine;
    both(
        findings, text("reduce", what, " to ", root),
        [&] {
          std::vector<T> in_place = mine;
          world.reduce(in_place, operation, root);
          return in_place == result;
        },
        [&] {
          std::vector<T> in_place = mine;
          world.reduce_async(in_place, operation, root).wait();
          return in_place == result;
        });
  }
  const std::size_t all = count * static_cast<std::size_t>(size);
  const std::vector<T> whole = values<T>(rank, all, O::reduction);
  const std::vector<T> shard = shard_of(reduced<T>(size, all, operation), rank, count);
  both(
      findings, "reduce_scatter" + what,
      [&] {
        std::vector<T> apart(count), in_place = whole;
        world.reduce_scatter(whole, apart, operation);
        world.reduce_scatter(in_place, std::span{in_place}.subspan(static_cast<std::size_t>(rank) * count, count), operation);
        return apart == shard && shard_of(in_place, rank, count) == shard;
      },
      [&] {
        std::vector<T> apart(count);
        world.reduce_scatter_async(std::span<const T>{whole}, apart, operation).wait();
        return apart == shard;
      });
}

template <class T, class Comm>
void moves(Comm& world, Findings& findings, std::size_t count) {
  const int size = world.size(), rank = world.rank();
  const std::string what = text(" of ", count, " ", pdp::name(pdp::dtype_of<T>));
  const std::size_t all = count * static_cast<std::size_t>(size);
  const std::vector<T> mine = values<T>(rank, count);
  std::vector<T> gathered;
  for (int each = 0; each < size; ++each) {
    const std::vector<T> theirs = values<T>(each, count);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  const std::span<T> none;

  both(
      findings, "all_gather" + what,
      [&] {
        std::vector<T> whole(all), in_place(all);
        world.all_gather(mine, whole);
        const std::span own = std::span{in_place}.subspan(static_cast<std::size_t>(rank) * count, count);
        std::ranges::copy(mine, own.begin());
        world.all_gather(own, in_place);
        return whole == gathered && in_place == gathered;
      },
      [&] {
        std::vector<T> whole(all);
        world.all_gather_async(mine, whole).wait();
        return whole == gathered;
      });
  for (const int root : roots(size)) {
    const std::string from = text(what, " with root ", root);
    both(
        findings, "broadcast" + from,
        [&] {
          std::vector<T> in_place = mine;
          world.broadcast(in_place, root);
          return in_place == values<T>(root, count);
        },
        [&] {
          std::vector<T> in_place = mine;
          world.broadcast_async(in_place, root).wait();
          return in_place == values<T>(root, count);
        });
    both(
        findings, "gather" + from,
        [&] {
          std::vector<T> whole(rank == root ? all : 0);
          world.gather(mine, whole, root);
          return whole == (rank == root ? gathered : std::vector<T>{});
        },
        [&] {
          std::vector<T> whole(all);
          world.gather_async(mine, whole, root).wait();
          return whole == (rank == root ? gathered : std::vector<T>(all));
        });
    both(
        findings, "scatter" + from,
        [&] {
          std::vector<T> shard(count);
          if (rank == root)
            world.scatter(gathered, shard, root);
          else
            world.scatter(none, shard, root);
          return shard == mine;
        },
        [&] {
          std::vector<T> shard(count);
          world.scatter_async(gathered, shard, root).wait();
          return shard == mine;
        });
  }
  if (size > 1) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    std::vector<T> received(count), again(count);
    auto sending = world.send_async(mine, right, 3);
    world.recv(received, left, 3);
    sending.wait();
    findings.expect(received == values<T>(left, count), "send and receive" + what);
    if (rank % 2 == 0 && rank + 1 < size) world.send(mine, rank + 1);
    if (rank % 2 == 1) {
      world.recv(again, rank - 1);
      findings.expect(again == values<T>(rank - 1, count), "blocking send and receive" + what);
    }
  }
  world.barrier();
  world.barrier_async().wait();
}

template <class T, class Comm>
void every_verb(Comm& world, Findings& findings) {
  constexpr std::size_t edge = comm::algorithm::ring_from_bytes / sizeof(T);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, edge + 1}) {
    reductions<T>(world, findings, count, comm::Sum{});
    moves<T>(world, findings, count);
  }
  for (const std::size_t count : {std::size_t{5}, edge, edge + 1}) {
    reductions<T>(world, findings, count, comm::Product{});
    reductions<T>(world, findings, count, comm::Min{});
    reductions<T>(world, findings, count, comm::Max{});
    reductions<T>(world, findings, count, comm::Average{});
  }
}

}  // namespace

TEMPLATE_TEST_CASE("every verb gives what a serial program gives, in every type and by every operation", "[comm]", comm::Thread,
                   comm::Tcp) {
  const int size = GENERATE(1, 2, 3, 4, 7, 8);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) {
    every_verb<float>(world, findings);
    every_verb<double>(world, findings);
    every_verb<std::int32_t>(world, findings);
    every_verb<std::int64_t>(world, findings);
    every_verb<std::byte>(world, findings);
  });
}

TEST_CASE("a rank alone makes every call with itself", "[comm]") {
  check_on_ranks<comm::Self>(1, [](comm::Self& world, Findings& findings) {
    every_verb<float>(world, findings);
    every_verb<std::byte>(world, findings);
    comm::Self part = world.split(3, 1);
    findings.expect(part.rank() == 0 && part.size() == 1, "a group of its own");
  });
}

TEMPLATE_TEST_CASE("all_reduce leaves the sum over ranks, with the same bits on every rank", "[comm]", comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("a split makes groups that live on their own", "[comm][split]", comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("works may be waited for in any order", "[comm][async]", comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("two groups may be waited for in opposite orders on two ranks", "[comm][async][split]", comm::Thread, comm::Tcp) {
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
                   comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("a communicator and its works may be moved while calls are in flight", "[comm][async]", comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("progress() moves calls to their end without waiting", "[comm][async]", comm::Thread, comm::Tcp) {
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

TEMPLATE_TEST_CASE("a rank that comes late keeps the others waiting, and disturbs nothing", "[comm]", comm::Thread, comm::Tcp) {
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
