// Compares every verb with a serial reference, for each backend, type and operation. Values are small integers, which every type holds
// exactly, so results do not depend on the order of additions. Many calls share one world.
#pragma once

#include <pdp/comm/any.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/message/algorithm/table.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "findings.hpp"

namespace conformance {

namespace comm = pdp::comm;
using pdp::text;

template <class T>
using Number = typename comm::detail::Arithmetic<T>::type;

/// Element `i` of a rank's input: 1 to 7. For products 1 or 2, so that they stay small.
template <class T>
T value(int rank, std::size_t i, comm::Reduction reduction) {
  const std::size_t mixed = i * 5 + static_cast<std::size_t>(rank) * 3 + i / 7;
  const int small = reduction == comm::Reduction::product ? (mixed % 3 == 0 ? 2 : 1) : static_cast<int>(mixed % 7) + 1;
  return static_cast<T>(static_cast<Number<T>>(small));
}
/// The number of elements after which values repeat. repeated() copies later elements, which is faster in a build without optimisation.
constexpr std::size_t period = 3 * 7 * 7;

/// Returns element(0) to element(count - 1) for a function whose values repeat after `period`.
template <class T, class F>
std::vector<T> repeated(std::size_t count, F&& element) {
  std::vector<T> made(count);
  for (std::size_t i = 0; i < std::min(count, period); ++i) made[i] = element(i);
  for (std::size_t i = period; i < count; i += period) std::copy_n(made.data(), std::min(period, count - i), made.data() + i);
  return made;
}

/// `count` elements of a rank's input, starting with element `first`.
template <class T>
std::vector<T> values(int rank, std::size_t count, comm::Reduction reduction = comm::Reduction::none, std::size_t first = 0) {
  return repeated<T>(count, [&](std::size_t i) { return value<T>(rank, first + i, reduction); });
}

/// The serial result of a reduction of all ranks' values(): `count` elements, starting with element `first`.
template <class T, class O>
std::vector<T> reduced(int size, std::size_t count, O, std::size_t first = 0) {
  return repeated<T>(count, [&](std::size_t i) {
    auto total = static_cast<Number<T>>(value<T>(0, first + i, O::reduction));
    for (int rank = 1; rank < size; ++rank) total = O::combine(total, static_cast<Number<T>>(value<T>(rank, first + i, O::reduction)));
    if (O::reduction == comm::Reduction::average) total = static_cast<Number<T>>(total / static_cast<Number<T>>(size));
    return static_cast<T>(total);
  });
}

/// Compares bytes, which is faster than comparing elements.
template <class T>
bool same(std::span<const T> one, std::span<const T> other) {
  return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size_bytes()) == 0);
}
template <class T>
bool same(const std::vector<T>& one, const std::vector<T>& other) {
  return same(std::span<const T>{one}, std::span<const T>{other});
}

inline std::set<int> roots(int size) { return {0, size / 2, size - 1}; }

/// Checks both forms of a call, blocking and asynchronous.
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
        return same(in_place, expected);
      },
      [&] {
        std::vector<T> in_place = mine, other = mine;
        auto first = world.all_reduce_async(in_place, operation), second = world.all_reduce_async(other, operation);
        second.wait();
        first.wait();
        return same(in_place, expected) && same(other, expected);
      });
  for (const int root : roots(size)) {
    const std::vector<T>& result = rank == root ? expected : mine;
    both(
        findings, text("reduce", what, " to ", root),
        [&] {
          std::vector<T> in_place = mine;
          world.reduce(in_place, operation, root);
          return same(in_place, result);
        },
        [&] {
          std::vector<T> in_place = mine;
          world.reduce_async(in_place, operation, root).wait();
          return same(in_place, result);
        });
  }
  const std::size_t all = count * static_cast<std::size_t>(size), first = count * static_cast<std::size_t>(rank);
  const std::vector<T> whole = values<T>(rank, all, O::reduction);
  const std::vector<T> shard = reduced<T>(size, count, operation, first);
  both(
      findings, "reduce_scatter" + what,
      [&] {
        std::vector<T> apart(count), in_place = whole;
        world.reduce_scatter(whole, apart, operation);
        world.reduce_scatter(in_place, std::span{in_place}.subspan(first, count), operation);
        return same(apart, shard) && std::ranges::equal(std::span{in_place}.subspan(first, count), shard);
      },
      [&] {
        std::vector<T> apart(count);
        world.reduce_scatter_async(std::span<const T>{whole}, apart, operation).wait();
        return same(apart, shard);
      });
}

template <class T, class Comm>
void moves(Comm& world, Findings& findings, std::size_t count) {
  const int size = world.size(), rank = world.rank();
  const std::string what = text(" of ", count, " ", pdp::name(pdp::dtype_of<T>));
  const std::size_t all = count * static_cast<std::size_t>(size), first = count * static_cast<std::size_t>(rank);
  const std::vector<T> mine = values<T>(rank, count);
  std::vector<T> gathered;
  for (int each = 0; each < size; ++each) {
    const std::vector<T> theirs = values<T>(each, count);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  const std::span<T> none;

  const std::vector<T> out = values<T>(rank, all);
  std::vector<T> exchanged(all), expected;  // shard p of rank r goes to shard r of rank p
  for (int each = 0; each < size; ++each) {
    const std::vector<T> part = values<T>(each, count, comm::Reduction::none, first);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  both(
      findings, "all_to_all" + what,
      [&] {
        std::vector<T> in(all);
        world.all_to_all(out, in);
        return same(in, expected);
      },
      [&] {
        world.all_to_all_async(out, exchanged).wait();
        return same(exchanged, expected);
      });
  both(
      findings, "all_gather" + what,
      [&] {
        std::vector<T> whole(all), in_place(all);
        world.all_gather(mine, whole);
        const std::span own = std::span{in_place}.subspan(first, count);
        std::ranges::copy(mine, own.begin());
        world.all_gather(own, in_place);
        return same(whole, gathered) && same(in_place, gathered);
      },
      [&] {
        std::vector<T> whole(all);
        world.all_gather_async(mine, whole).wait();
        return same(whole, gathered);
      });
  for (const int root : roots(size)) {
    const std::string from = text(what, " with root ", root);
    both(
        findings, "broadcast" + from,
        [&] {
          std::vector<T> in_place = mine;
          world.broadcast(in_place, root);
          return same(in_place, values<T>(root, count));
        },
        [&] {
          std::vector<T> in_place = mine;
          world.broadcast_async(in_place, root).wait();
          return same(in_place, values<T>(root, count));
        });
    both(
        findings, "gather" + from,
        [&] {
          std::vector<T> whole(rank == root ? all : 0);
          world.gather(mine, whole, root);
          return same(whole, rank == root ? gathered : std::vector<T>{});
        },
        [&] {
          std::vector<T> whole(all);
          world.gather_async(mine, whole, root).wait();
          return same(whole, rank == root ? gathered : std::vector<T>(all));
        });
    both(
        findings, "scatter" + from,
        [&] {
          std::vector<T> shard(count);
          if (rank == root)
            world.scatter(gathered, shard, root);
          else
            world.scatter(none, shard, root);
          return same(shard, mine);
        },
        [&] {
          std::vector<T> shard(count);
          world.scatter_async(gathered, shard, root).wait();
          return same(shard, mine);
        });
  }
  if (size > 1) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    std::vector<T> received(count), again(count);
    typename Comm::Work sending, receiving;
    pass_each_other(world, [&] {
      sending = world.send_async(mine, right, 3);
      receiving = world.recv_async(received, left, 3);
    });
    receiving.wait();
    sending.wait();
    findings.expect(same(received, values<T>(left, count)), "send and receive" + what);
    std::vector<T> both_ways(count + 2);
    world.send_recv(values<T>(rank, count + 2), right, both_ways, left);
    findings.expect(same(both_ways, values<T>(left, count + 2)), "send_recv" + what);
    if (rank % 2 == 0 && rank + 1 < size) world.send(mine, rank + 1);
    if (rank % 2 == 1) {
      world.recv(again, rank - 1);
      findings.expect(same(again, values<T>(rank - 1, count)), "blocking send and receive" + what);
    }
  }
  world.barrier();
  world.barrier_async().wait();
}

/// Checks calls with uneven shards: that of rank r has base + 3 r + 1 elements, that of rank 1 has none.
template <class T, class Comm>
void uneven_shards(Comm& world, Findings& findings, std::size_t base) {
  const int size = world.size(), rank = world.rank();
  std::vector<std::size_t> counts, begins{0};
  for (int each = 0; each < size; ++each) {
    counts.push_back(each == 1 ? 0 : base + 3 * static_cast<std::size_t>(each) + 1);
    begins.push_back(begins.back() + counts.back());
  }
  const auto own = [&](auto& whole) {
    return std::span{whole}.subspan(begins[static_cast<std::size_t>(rank)], counts[static_cast<std::size_t>(rank)]);
  };
  const std::vector<T> whole = values<T>(size, begins.back());
  const std::vector<T> mine{own(whole).begin(), own(whole).end()};
  const std::string what = text(" with uneven shards from ", base, " ", pdp::name(pdp::dtype_of<T>));

  std::vector<T> gathered(whole.size()), in_place(whole.size());
  world.all_gather(mine, gathered, counts);
  std::ranges::copy(mine, own(in_place).begin());
  world.all_gather_async(own(in_place), in_place, counts).wait();
  findings.expect(same(gathered, whole) && same(in_place, whole), "all_gather" + what);

  const std::vector<T> brought = values<T>(rank, whole.size(), comm::Reduction::sum);
  const std::vector<T> total = reduced<T>(size, whole.size(), comm::Sum{});
  std::vector<T> shard(mine.size());
  world.reduce_scatter(brought, shard, counts, comm::Sum{});
  findings.expect(std::ranges::equal(shard, own(total)), "reduce_scatter" + what);

  for (const int root : roots(size)) {
    std::vector<T> at_root(rank == root ? whole.size() : 0), received(mine.size());
    world.gather(mine, at_root, counts, root);
    world.scatter(whole, received, counts, root);
    findings.expect((rank != root || at_root == whole) && same(received, mine), text("gather and scatter", what, ", root ", root));
  }

  // Rank r sends base + r + p + 1 elements to rank p, or none if p is 1.
  std::vector<std::size_t> sent, received;
  std::vector<T> out, expected;
  for (int peer = 0; peer < size; ++peer) {
    const auto count = [base](int from, int to) { return to == 1 ? 0 : base + static_cast<std::size_t>(from + to) + 1; };
    sent.push_back(count(rank, peer));
    received.push_back(count(peer, rank));
    for (std::size_t i = 0; i < sent.back(); ++i) out.push_back(value<T>(rank + 10 * peer, i, comm::Reduction::none));
    for (std::size_t i = 0; i < received.back(); ++i) expected.push_back(value<T>(peer + 10 * rank, i, comm::Reduction::none));
  }
  std::vector<T> in(expected.size());
  world.all_to_all(out, sent, in, received);
  findings.expect(same(in, expected), "all_to_all" + what);
}

/// A size in bytes, larger than the largest piece that any backend sends to all ranks at once.
constexpr std::size_t large_bytes = 16 * 1024;

/// Sums float values at each size at which all_reduce switches its algorithm, one element above it, and at several MiB. Sanitizer builds
/// skip sizes above 1 MiB.
template <class Comm>
void switch_points(Comm& world, Findings& findings) {
  std::set<std::size_t> sizes{/*slots to shares*/ 4 * 1024, /*one slot to several*/ 64 * 1024, /*all slots to a second round*/ 512 * 1024,
                              5 * 1024 * 1024};
  for (const auto& row : comm::algorithm::all_reduce_choices)
    if (row.bytes <= 8 * 1024 * 1024) sizes.insert(row.bytes);
  if (PDP_TEST_SANITIZED) sizes.erase(sizes.upper_bound(1024 * 1024), sizes.end());
  for (const std::size_t bytes : sizes)
    for (const std::size_t count : {bytes / sizeof(float), bytes / sizeof(float) + 1}) {
      std::vector<float> brought = values<float>(world.rank(), count);
      world.all_reduce(brought, comm::Sum{});
      findings.expect(same(brought, reduced<float>(world.size(), count, comm::Sum{})), text("all_reduce of ", count, " float32"));
    }
}

/// Checks all_reduce of T with each operation of O.
template <class T, class... O, class Comm>
void sums_of(Comm& world, Findings& findings) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{37}, large_bytes / sizeof(T) + 1}) {
    const auto check = [&](auto operation) {
      using Op = decltype(operation);
      std::vector<T> brought = values<T>(world.rank(), count, Op::reduction);
      world.all_reduce(brought, operation);
      findings.expect(same(brought, reduced<T>(world.size(), count, operation)),
                      text("all_reduce (", comm::name(Op::reduction), ") of ", count, " ", pdp::name(pdp::dtype_of<T>)));
    };
    (check(O{}), ...);
  }
}

/// Sanitizer builds try two types only, since the code that moves values does not depend on their type.
template <class T>
constexpr bool is_tried = !PDP_TEST_SANITIZED || std::is_same_v<T, float> || std::is_same_v<T, std::byte>;

template <class T, class Comm>
void every_verb(Comm& world, Findings& findings) {
  if constexpr (is_tried<T>) {
    constexpr std::size_t edge = large_bytes / sizeof(T);
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
}

/// Runs all checks of this file that every backend must pass, on the ranks of one world.
template <class Comm>
void every_call_of(Comm& world, Findings& findings) {
  every_verb<float>(world, findings);
  every_verb<double>(world, findings);
  every_verb<std::int32_t>(world, findings);
  every_verb<std::int64_t>(world, findings);
  every_verb<std::byte>(world, findings);
  switch_points(world, findings);
  for (const std::size_t base : {std::size_t{0}, std::size_t{500}, std::size_t{9000}}) uneven_shards<float>(world, findings, base);
  sums_of<pdp::Float16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
  sums_of<pdp::BFloat16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
  sums_of<std::int8_t, comm::Sum, comm::Min, comm::Average, comm::BitAnd, comm::BitOr>(world, findings);
  sums_of<std::int64_t, comm::BitAnd, comm::BitOr>(world, findings);
  sums_of<std::byte, comm::BitAnd, comm::BitOr>(world, findings);
}

/// Runs all checks through comm::Any, so that they are compiled once for all backends, and each verb once with the backend's own type.
template <class Comm>
void every_call(Comm& world, Findings& findings) {
  reductions<float>(world, findings, 7, comm::Sum{});
  moves<float>(world, findings, 7);
  uneven_shards<float>(world, findings, 500);
  comm::Any any = comm::Any::borrow(world);
  every_call_of(any, findings);
}

}  // namespace conformance
