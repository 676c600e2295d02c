#pragma once

#include <pdp/comm/algorithm/binomial.hpp>
#include <pdp/comm/algorithm/dissemination.hpp>
#include <pdp/comm/algorithm/linear.hpp>
#include <pdp/comm/algorithm/pairwise.hpp>
#include <pdp/comm/algorithm/recursive_doubling.hpp>
#include <pdp/comm/algorithm/ring.hpp>
#include <pdp/comm/operation.hpp>

namespace pdp::comm::algorithm {

/// All-reduce of more bytes than this goes around the ring; less is a matter of round trips, not of bandwidth.
constexpr std::size_t ring_from_bytes = 16 * 1024;

/// What a collective works on, in elements: `count` where every rank brings the same, else shards; all_to_all has shards of both kinds.
struct Extent {
  std::size_t count = 0;
  Shards shards{};
  Shards received{};
};

/// Writes the steps of one rank for a collective.
constexpr void select(Schedule& schedule, Verb verb, int rank, int size, int root, const Extent& extent, std::size_t element_bytes) {
  const std::size_t count = extent.count;
  schedule.clear();
  switch (verb) {
    case Verb::send:
    case Verb::split:
      break;
    case Verb::barrier:
      return dissemination_barrier(schedule, rank, size);
    case Verb::broadcast:
      return binomial_broadcast(schedule, rank, size, root, count);
    case Verb::reduce:
      return binomial_reduce(schedule, rank, size, root, count);
    case Verb::all_reduce:
      if (count * element_bytes > ring_from_bytes && count >= static_cast<std::size_t>(size))
        return ring_all_reduce(schedule, rank, size, count);
      return recursive_doubling_all_reduce(schedule, rank, size, count);
    case Verb::reduce_scatter:
      return ring_reduce_scatter(schedule, rank, size, extent.shards);
    case Verb::all_gather:
      return ring_all_gather(schedule, rank, size, extent.shards);
    case Verb::gather:
      return linear_gather(schedule, rank, size, root, extent.shards);
    case Verb::scatter:
      return linear_scatter(schedule, rank, size, root, extent.shards);
    case Verb::all_to_all:
      return pairwise_all_to_all(schedule, rank, size, extent.shards, extent.received);
  }
}

}  // namespace pdp::comm::algorithm
