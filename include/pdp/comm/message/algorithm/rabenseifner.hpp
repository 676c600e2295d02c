#pragma once

#include <bit>

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// All-reduce for large messages, in place on the output. Pairs at decreasing distance halve the block that each rank sums. Then pairs
/// exchange the summed blocks in the reverse order. This takes 2 log2(size) rounds and, for powers of two, as few bytes as a ring. Each
/// block is summed on one rank, so all ranks end with the same bits. If the number of ranks is not a power of two, some even ranks first
/// send their values to the odd rank after them, and receive the result last. Rabenseifner, "Optimization of collective reduction
/// operations", 2004.
constexpr void rabenseifner_all_reduce(Schedule& schedule, int rank, int size, std::size_t count) {
  using enum Step::Buffer;
  const int power = as_int(std::bit_floor(static_cast<unsigned>(size)));
  const int folded = size - power;  // pairs (0, 1), (2, 3), ...: the odd rank of each pair takes part for both
  const bool in_pair = rank < 2 * folded;
  if (in_pair && rank % 2 == 0) {
    schedule.send(rank + 1, output, 0, count);
    schedule.next_round();
    schedule.receive(rank + 1, output, 0, count);
    return;
  }
  if (in_pair) {
    schedule.combine(rank - 1, output, 0, count);
    schedule.next_round();
  }
  const int self = in_pair ? rank / 2 : rank - folded;
  const auto peer_at = [&](int distance) {
    const int other = self ^ distance;
    return other < folded ? 2 * other + 1 : other + folded;
  };
  const auto begin = [&](int block) { return block_begin(count, power, block); };
  const auto elements = [&](int first, int last) { return begin(last) - begin(first); };
  int first = 0, last = power;  // the blocks that this rank still sums
  for (int distance = power / 2; distance >= 1; distance /= 2) {
    const int middle = (first + last) / 2;
    const bool upper = (self & distance) != 0;
    schedule.send(peer_at(distance), output, begin(upper ? first : middle), upper ? elements(first, middle) : elements(middle, last));
    (upper ? first : last) = middle;
    schedule.combine(peer_at(distance), output, begin(first), elements(first, last));
    schedule.next_round();
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const bool upper = (self & distance) != 0;
    const int theirs = upper ? first - distance : last;
    schedule.send(peer_at(distance), output, begin(first), elements(first, last));
    schedule.receive(peer_at(distance), output, begin(theirs), elements(theirs, theirs + distance));
    (upper ? first : last) = upper ? theirs : theirs + distance;
    schedule.next_round();
  }
  if (in_pair) schedule.send(rank - 1, output, 0, count);
}

}  // namespace pdp::comm::algorithm
