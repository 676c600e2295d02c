#pragma once

#include <pdp/comm/message/schedule.hpp>

namespace pdp::comm::algorithm {

/// Barrier: in round k, each rank sends to the rank 2^k after it and receives from the rank 2^k before it. ceil(log2(size)) rounds.
/// Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
constexpr void dissemination_barrier(Schedule& schedule, int rank, int size) {
  for (int distance = 1; distance < size; distance *= 2) {
    schedule.send((rank + distance) % size, Step::Buffer::input, 0, 0);
    schedule.receive((rank - distance % size + size) % size, Step::Buffer::output, 0, 0);
    schedule.next_round();
  }
}

}  // namespace pdp::comm::algorithm
