#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// Reduction in the order of ranks, in place on the root, which receives the values of one rank after another. For ranks of one host,
/// because messages between them cost little.
constexpr void rank_ordered_reduce(Schedule& schedule, int rank, int size, int root, std::size_t count) {
  using enum Step::Buffer;
  if (rank != root) return schedule.send(root, output, 0, count);
  if (root > 0) {
    schedule.copy(scratch, 0, output, 0, count);
    schedule.receive(0, output, 0, count);
    schedule.next_round();
  }
  for (int other = 1; other < size; ++other) {
    if (other == root)
      schedule.add(output, 0, scratch, 0, count);
    else
      schedule.combine(other, output, 0, count);
    schedule.next_round();
  }
}

/// Reduce-scatter in the order of ranks: the input is all shards, the output this rank's shard of the reduction. All shards are sent to
/// their ranks in one round. Uses scratch memory for one shard per rank.
constexpr void rank_ordered_reduce_scatter(Schedule& schedule, int rank, int size, Shards shards) {
  using enum Step::Buffer;
  const std::size_t count = shards.size(rank);
  const auto place = [count](int of) { return as_size(of) * count; };
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size, from = (rank + size - distance) % size;
    schedule.send(to, input, shards.begin(to), shards.size(to));
    schedule.receive(from, scratch, place(from), count);
  }
  schedule.next_round();
  schedule.copy(scratch, place(rank), input, shards.begin(rank), count);  // the output may overlap the input
  schedule.copy(output, 0, scratch, 0, count);
  for (int other = 1; other < size; ++other) schedule.add(output, 0, scratch, place(other), count);
}

}  // namespace pdp::comm::algorithm
