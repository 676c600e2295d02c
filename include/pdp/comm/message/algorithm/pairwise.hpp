#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::algorithm {

/// All-to-all: shard p of the input goes to rank p, shard p of the output comes from there. At distance d each rank sends to the one d
/// above it and receives from the one d below, so that nobody is sent to by all at once; a few distances are under way together.
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
