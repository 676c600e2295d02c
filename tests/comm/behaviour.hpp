// Requirements on every backend beyond the results of single calls: groups, calls in flight, early and late messages. All ranks of a world
// call each function together.
#pragma once

#include <pdp/comm/basic_communicator.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "findings.hpp"

namespace behaviour {

namespace comm = pdp::comm;
using pdp::text;

/// Checks the groups that split() makes: their ranks, sums and messages.
template <class Comm>
void split_groups(Comm& world, Findings& findings) {
  const int size = world.size();
  const int rank = world.rank();
  Comm parity = world.split(rank % 2, /*key, reversed*/ -rank);
  const int members = (size - rank % 2 + 1) / 2;
  findings.expect(parity.size() == members, "size of a half");
  findings.expect(parity.rank() == members - 1 - rank / 2, "ranks in the order of keys");
  std::vector<int> gathered(static_cast<std::size_t>(members));
  parity.all_gather(std::array{rank}, gathered);
  findings.expect(std::ranges::is_sorted(gathered, std::greater{}) && gathered.front() % 2 == rank % 2, "members of a half");

  Comm alone = world.split(rank, 0);
  std::array sum{rank};
  alone.all_reduce(sum, comm::Sum{});
  findings.expect(alone.size() == 1 && sum[0] == rank, "a group of one");

  Comm all = parity.split(0, parity.rank());
  Comm same = world.split(7, 0);
  findings.expect(all.size() == members && same.size() == size && same.rank() == rank, "groups of groups, and of all");
  sum = {1};
  same.all_reduce(sum, comm::Sum{});
  findings.expect(sum[0] == size, "a sum over all");
  const int peer = parity.rank() ^ 1;
  if (peer < parity.size()) {  // peers of a group are ranks of that group
    std::array mine{rank}, theirs{-1};
    typename Comm::Work sending, receiving;
    pass_each_other(parity, [&] {
      sending = parity.send_async(mine, peer);
      receiving = parity.recv_async(theirs, peer);
    });
    receiving.wait();
    sending.wait();
    findings.expect(theirs[0] == gathered[static_cast<std::size_t>(peer)], "a message within a group");
  }
}

/// Checks calls for which each rank waits in a different order.
template <class Comm>
void works_in_any_order(Comm& world, Findings& findings) {
  const int size = world.size();
  constexpr std::size_t calls = 12;
  std::vector<std::vector<std::int64_t>> sums;
  for (std::size_t call = 0; call < calls; ++call) sums.emplace_back(call % 3 == 0 ? 10'000 : call + 1, 1 + static_cast<int>(call));
  for (int round = 0; round < 3; ++round) {
    std::vector<typename Comm::Work> works(calls);
    for (std::size_t call = 0; call < calls; ++call) works[call] = world.all_reduce_async(sums[call], comm::Max{});
    for (std::size_t i = 0; i < calls; ++i) {  // a different order on each rank
      auto& work = works[(i * 5 + static_cast<std::size_t>(world.rank())) % calls];
      findings.expect(work.pending(), "a Work without wait is pending");
      work.wait();
      work.wait();  // a second wait does nothing
      findings.expect(!work.pending(), "a work that was waited for is not pending");
    }
  }
  for (std::size_t call = 0; call < calls; ++call)
    findings.expect(sums[call].back() == 1 + static_cast<int>(call), text("result of call ", call, " of ", size, " ranks"));
}

/// Polls calls with done() until they complete. Needs 3 ranks.
template <class Comm>
void looks(Comm& world, Findings& findings, std::size_t elements) {
  std::vector<int> values(elements, 1);
  auto sum = world.all_reduce_async(values, comm::Sum{});
  if (world.rank() == 0) findings.expect(sum.pending(), "a work that was only looked at is pending");
  while (!sum.done()) std::this_thread::yield();
  sum.wait();
  findings.expect(values.back() == 3 && sum.done() && typename Comm::Work{}.done(), "the sum, and nothing left to wait for");

  std::array message{world.rank()};
  if (world.rank() == 2) {
    auto first = world.recv_async(message, 1);
    while (!first.done()) std::this_thread::yield();
    first.wait();
  } else if (world.rank() == 1) {
    auto sending = world.send_async(message, 2);
    while (!sending.done()) std::this_thread::yield();
    sending.wait();
  }
  findings.expect(message[0] == (world.rank() == 0 ? 0 : 1), "a message");
}

/// Starts messages in both directions in one grouped(). Needs 3 ranks.
template <class Comm>
void started_together(Comm& world, Findings& findings) {
  const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
  std::array mine{world.rank()}, to_right{-1}, to_left{-1};
  std::vector<typename Comm::Work> works;
  world.grouped([&] {
    works.push_back(world.recv_async(to_right, left));
    works.push_back(world.send_async(mine, right));
    works.push_back(world.send_async(mine, left));
    works.push_back(world.recv_async(to_left, right));
  });
  for (auto& work : works) work.wait();
  findings.expect(to_right[0] == left && to_left[0] == right, "messages both ways");
}

/// Checks memory from allocate(): size, alignment, zeros, and sums in it.
template <class Comm>
void memory(Comm& world, Findings& findings) {
  const int size = world.size();
  comm::Registered<float> values = world.template allocate<float>(10'001);
  findings.expect(values.size() == 10'001 && reinterpret_cast<std::uintptr_t>(values.data()) % pdp::alignment == 0, "size and alignment");
  findings.expect(std::ranges::count(values, 0.0f) == 10'001, "zeros");
  values[10'000] = 1;
  world.all_reduce(values, comm::Sum{});
  world.all_reduce(values.span().subspan(9'999), comm::Sum{});
  findings.expect(values[10'000] == static_cast<float>(size * size) && values[0] == 0, "two sums");
  const comm::Registered<std::int64_t> nothing = world.template allocate<std::int64_t>(0);
  findings.expect(nothing.size() == 0, "an empty one");
  const comm::Registered<float> moved = std::move(values);
  findings.expect(moved.size() == 10'001 && values.size() == 0, "a moved-from object");  // NOLINT(bugprone-use-after-move)
}

/// Checks memory that all ranks share: a rank sees the writes of other ranks to its memory after a barrier. If `expected` is false, only
/// checks that the ranks share no memory.
template <class Comm>
void common_memory(Comm& world, Findings& findings, bool expected) {
  const int size = world.size(), rank = world.rank();
  comm::Registered<std::int32_t> values = world.template allocate<std::int32_t>(3 * static_cast<std::size_t>(size));
  findings.expect(world.shares_memory() == expected && values.is_common() == expected, "whether ranks share memory");
  if (!expected) return;
  findings.expect(values.of(rank).data() == values.data() && values.of(rank).size() == values.size(), "its own part");
  for (int round = 1; round < 4; ++round) {
    for (int other = 0; other < size; ++other) values.of(other)[3 * static_cast<std::size_t>(rank)] = 100 * round + 10 * rank + other;
    world.barrier();
    for (int other = 0; other < size; ++other) {
      findings.expect(values[3 * static_cast<std::size_t>(other)] == 100 * round + 10 * other + rank, "what others have written here");
      findings.expect(values.of(other)[3 * static_cast<std::size_t>(rank)] == 100 * round + 10 * rank + other, "what it has written");
    }
    world.barrier();
  }
  const comm::Registered<std::int32_t> moved = std::move(values);
  findings.expect(moved.is_common() && !values.is_common(), "a moved-from object");  // NOLINT(bugprone-use-after-move)
}

/// Checks calls of two groups for which the two ranks wait in opposite orders. Needs 2 ranks.
template <class Comm>
void two_groups(Comm& world, Findings& findings) {
  Comm one = world.split(0, 0), two = world.split(0, 0);
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
  // Blocking calls of different groups need the same order on both ranks, so the world's barrier comes last on both.
  world.barrier();
  findings.expect(first == std::vector<float>(50'000, 1) && second == std::vector<float>(50'000, 2), "averages of equal values");
}

/// Checks messages with tags that arrive before their receives are posted. Needs 3 ranks.
template <class Comm>
void tags(Comm& world, Findings& findings) {
  constexpr int tags = 20;
  constexpr std::size_t large = 100'000;
  if (world.rank() == 0) {
    std::vector<std::vector<int>> payloads;
    for (int tag = 0; tag < tags; ++tag) payloads.emplace_back(tag % 4 == 0 ? large : static_cast<std::size_t>(tag), tag);
    std::vector<typename Comm::Work> sending;
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
  // Messages with equal peers and tags keep their order. A collective can run while they are in flight.
  std::array<int, 3> sent{10, 11, 12}, got{};
  std::array<typename Comm::Work, 6> works;
  const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
  for (std::size_t i = 0; i < 3; ++i) works[i] = world.send_async(std::span{&sent[i], 1}, right, 5);
  std::array sum{1};
  world.all_reduce(sum, comm::Sum{});
  for (std::size_t i = 0; i < 3; ++i) works[3 + i] = world.recv_async(std::span{&got[i], 1}, left, 5);
  for (std::size_t i = 6; i-- > 0;) works[i].wait();
  findings.expect(got == sent && sum[0] == 3, "order of messages with one tag");
}

/// Moves a communicator and its Works while a call is in flight. Needs 2 ranks.
template <class Comm>
void moves_in_flight(Comm& world, Findings& findings) {
  std::vector<float> values(10'000, 1);
  auto work = world.all_reduce_async(values, comm::Sum{});
  Comm moved{std::move(world)};
  auto same = std::move(work);
  findings.expect(!work.pending() && same.pending(), "the work has moved");  // NOLINT(bugprone-use-after-move)
  typename Comm::Work assigned;
  findings.expect(!assigned.pending(), "a new work waits for nothing");
  assigned.wait();
  assigned = std::move(same);
  assigned.wait();
  world = std::move(moved);
  Comm part = world.split(0, 0);
  part = world.split(0, 1);  // destroys the first group
  part.all_reduce(values, comm::Sum{});
  findings.expect(values == std::vector<float>(10'000, 4), "two sums over two ranks");
}

/// Alternates done() and progress() until a call is complete. Needs 2 ranks.
template <class Comm>
void progress(Comm& world, Findings& findings) {
  std::vector<double> values(100'000, 1);
  auto work = world.all_reduce_async(values, comm::Sum{});
  while (!work.done()) world.progress();
  work.wait();
  findings.expect(values == std::vector<double>(100'000, 2), "the sum");
}

/// Checks messages and averages in rounds in each of which another rank is late. Needs 3 ranks.
template <class Comm>
void late_ranks(Comm& world, Findings& findings) {
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
}

}  // namespace behaviour
