#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::algorithm {

/// Gather: the root's output is the inputs of all ranks, in the order of ranks. Each value crosses the network once.
constexpr void linear_gather(Schedule& schedule, int rank, int size, int root, Shards shards) {
  if (rank != root) return schedule.send(root, Step::Buffer::input, 0, shards.size(rank));
  schedule.copy(Step::Buffer::output, shards.begin(root), Step::Buffer::input, 0, shards.size(root));
  for (int peer = 0; peer < size; ++peer)
    if (peer != root) schedule.receive(peer, Step::Buffer::output, shards.begin(peer), shards.size(peer));
}

/// Scatter: each rank's output is its shard of the root's input.
constexpr void linear_scatter(Schedule& schedule, int rank, int size, int root, Shards shards) {
  if (rank != root) return schedule.receive(root, Step::Buffer::output, 0, shards.size(rank));
  schedule.copy(Step::Buffer::output, 0, Step::Buffer::input, shards.begin(root), shards.size(root));
  for (int peer = 0; peer < size; ++peer)
    if (peer != root) schedule.send(peer, Step::Buffer::input, shards.begin(peer), shards.size(peer));
}

}  // namespace pdp::comm::algorithm
