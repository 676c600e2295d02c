#pragma once

#include <pdp/comm/schedule.hpp>

namespace pdp::comm::algorithm {

/// Gather: the root's output is every rank's input of `count` elements, in the order of ranks. Each value crosses the network once.
constexpr void linear_gather(Schedule& schedule, int rank, int size, int root, std::size_t count) {
  if (rank != root) return schedule.send(root, Step::Buffer::input, 0, count);
  schedule.copy(Step::Buffer::output, static_cast<std::size_t>(root) * count, Step::Buffer::input, 0, count);
  for (int peer = 0; peer < size; ++peer)
    if (peer != root) schedule.receive(peer, Step::Buffer::output, static_cast<std::size_t>(peer) * count, count);
}

/// Scatter: each rank's output is its shard of `count` elements of the root's input.
constexpr void linear_scatter(Schedule& schedule, int rank, int size, int root, std::size_t count) {
  if (rank != root) return schedule.receive(root, Step::Buffer::output, 0, count);
  schedule.copy(Step::Buffer::output, 0, Step::Buffer::input, static_cast<std::size_t>(root) * count, count);
  for (int peer = 0; peer < size; ++peer)
    if (peer != root) schedule.send(peer, Step::Buffer::input, static_cast<std::size_t>(peer) * count, count);
}

}  // namespace pdp::comm::algorithm
