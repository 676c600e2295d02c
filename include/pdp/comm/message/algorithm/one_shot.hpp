#pragma once

#include <pdp/comm/message/schedule.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// All-reduce of a few values, in place on the output. Every rank sends its values to all others and adds up what it receives, in the order
/// of ranks. This takes one round, but sends more bytes than the other algorithms. Uses scratch memory for the values of all ranks.
constexpr void one_shot_all_reduce(Schedule& schedule, int rank, int size, std::size_t count) {
  using enum Step::Buffer;
  const auto place = [count](int of) { return as_size(of) * count; };
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size, from = (rank + size - distance) % size;
    schedule.send(to, output, 0, count);
    schedule.receive(from, scratch, place(from), count);
  }
  schedule.next_round();
  if (rank > 0) {
    schedule.copy(scratch, place(rank), output, 0, count);
    schedule.copy(output, 0, scratch, 0, count);
  }
  for (int other = 1; other < size; ++other) schedule.add(output, 0, scratch, place(other), count);
}

}  // namespace pdp::comm::algorithm
