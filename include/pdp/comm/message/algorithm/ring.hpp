#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// All-reduce for large messages, in place on the output: each block travels once around the ring to be summed, and once more to be
/// distributed. Each rank sends 2 (size - 1) / size of the values, which is the minimum. Patarasuk, Yuan, "Bandwidth optimal all-reduce
/// algorithms for clusters of workstations", 2009.
constexpr void ring_all_reduce(Schedule& schedule, int rank, int size, std::size_t count) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const auto block = [&](int steps_back) { return ((rank - steps_back) % size + size) % size; };
  for (int k = 0; k < size - 1; ++k) {
    const int out = block(k), in = block(k + 1);
    schedule.send(right, Step::Buffer::output, block_begin(count, size, out), block_size(count, size, out));
    schedule.combine(left, Step::Buffer::output, block_begin(count, size, in), block_size(count, size, in));
    schedule.next_round();
  }
  for (int k = 0; k < size - 1; ++k) {
    const int out = block(k - 1), in = block(k);
    schedule.send(right, Step::Buffer::output, block_begin(count, size, out), block_size(count, size, out));
    schedule.receive(left, Step::Buffer::output, block_begin(count, size, in), block_size(count, size, in));
    schedule.next_round();
  }
}

/// Reduce-scatter: the input is all shards, the output this rank's shard of the sum. Uses scratch memory for two shards.
constexpr void ring_reduce_scatter(Schedule& schedule, int rank, int size, Shards shards) {
  using enum Step::Buffer;
  if (size == 1) return schedule.copy(output, 0, input, 0, shards.size(0));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const std::size_t half = shards.largest(size);
  const auto shard = [&](int steps_back) { return ((rank - 1 - steps_back) % size + size) % size; };
  const auto place = [&](int k) { return as_size(k % 2) * half; };
  for (int k = 0; k < size - 1; ++k) {
    const bool last = k == size - 2;
    const int out = shard(k), in = shard(k + 1);
    schedule.copy(last ? output : scratch, last ? 0 : place(k + 1), input, shards.begin(in), shards.size(in));
    schedule.send(right, k == 0 ? input : scratch, k == 0 ? shards.begin(out) : place(k), shards.size(out));
    schedule.combine(left, last ? output : scratch, last ? 0 : place(k + 1), shards.size(in));
    schedule.next_round();
  }
}

/// All-gather: the input is this rank's shard, the output all shards in the order of ranks.
constexpr void ring_all_gather(Schedule& schedule, int rank, int size, Shards shards) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const auto shard = [&](int steps_back) { return ((rank - steps_back) % size + size) % size; };
  schedule.copy(Step::Buffer::output, shards.begin(rank), Step::Buffer::input, 0, shards.size(rank));
  for (int k = 0; k < size - 1; ++k) {
    const int out = shard(k), in = shard(k + 1);
    schedule.send(right, Step::Buffer::output, shards.begin(out), shards.size(out));
    schedule.receive(left, Step::Buffer::output, shards.begin(in), shards.size(in));
    schedule.next_round();
  }
}

}  // namespace pdp::comm::algorithm
