#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::algorithm {

/// All-to-all: shard p of the input goes to rank p, and shard p of the output comes from rank p. At distance d each rank sends to the rank
/// d above it and receives from the rank d below it, so that no rank receives from all others at once. A few distances are in flight
/// together.
constexpr void pairwise_all_to_all(Schedule& schedule, int rank, int size, Shards sent, Shards received) {
  constexpr int distances_at_once = 8;
  schedule.copy(Step::Buffer::output, received.begin(rank), Step::Buffer::input, sent.begin(rank), sent.size(rank));
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size, from = (rank + size - distance) % size;
    schedule.send(to, Step::Buffer::input, sent.begin(to), sent.size(to));
    schedule.receive(from, Step::Buffer::output, received.begin(from), received.size(from));
    if (distance % distances_at_once == 0) schedule.next_round();
  }
}

}  // namespace pdp::comm::algorithm
