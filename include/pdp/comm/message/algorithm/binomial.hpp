#pragma once

#include <pdp/comm/message/schedule.hpp>

namespace pdp::comm::algorithm {

/// Broadcast along a binomial tree: in each round, every rank that has the values sends them to another rank. ceil(log2(size)) rounds.
/// Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005.
constexpr void binomial_broadcast(Schedule& schedule, int rank, int size, int root, std::size_t count) {
  const int relative = (rank - root + size) % size;
  int reach = 1;
  while (reach < size) reach *= 2;
  for (int distance = reach / 2; distance >= 1; distance /= 2) {
    if (relative % (2 * distance) == 0 && relative + distance < size)
      schedule.send((relative + distance + root) % size, Step::Buffer::output, 0, count);
    else if (relative % (2 * distance) == distance)
      schedule.receive((relative - distance + root) % size, Step::Buffer::output, 0, count);
    schedule.next_round();
  }
}

/// Reduction along the same tree, towards the root. Partial results are in scratch memory, so that only the root's output changes.
constexpr void binomial_reduce(Schedule& schedule, int rank, int size, int root, std::size_t count) {
  const int relative = (rank - root + size) % size;
  const Step::Buffer partial = rank == root ? Step::Buffer::output : Step::Buffer::scratch;
  schedule.copy(partial, 0, Step::Buffer::input, 0, count);
  for (int distance = 1; distance < size; distance *= 2) {
    if (relative % (2 * distance) == distance) {
      schedule.send((relative - distance + root) % size, partial, 0, count);
      return;
    }
    if (relative + distance < size) schedule.combine((relative + distance + root) % size, partial, 0, count);
    schedule.next_round();
  }
}

}  // namespace pdp::comm::algorithm
