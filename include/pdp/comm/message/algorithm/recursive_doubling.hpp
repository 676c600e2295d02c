#pragma once

#include <bit>

#include <pdp/comm/message/schedule.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// All-reduce for small messages, in place on the output: in round k, pairs at distance 2^k exchange and add their values. Both ranks of a
/// pair add the same two values, so all ranks end with the same bits. If the number of ranks is not a power of two, some even ranks first
/// send their values to the odd rank after them, and receive the result last. Thakur, Rabenseifner, Gropp, "Optimization of collective
/// communication operations in MPICH", 2005.
constexpr void recursive_doubling_all_reduce(Schedule& schedule, int rank, int size, std::size_t count) {
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
  for (int distance = 1; distance < power; distance *= 2) {
    const int other = self ^ distance;
    const int peer = other < folded ? 2 * other + 1 : other + folded;
    schedule.copy(scratch, 0, output, 0, count);  // the values to send must not change while the peer's values are added
    schedule.send(peer, scratch, 0, count);
    schedule.combine(peer, output, 0, count);
    schedule.next_round();
  }
  if (in_pair) schedule.send(rank - 1, output, 0, count);
}

}  // namespace pdp::comm::algorithm
