#pragma once

#include <pdp/comm/message/algorithm/binomial.hpp>
#include <pdp/comm/message/algorithm/dissemination.hpp>
#include <pdp/comm/message/algorithm/linear.hpp>
#include <pdp/comm/message/algorithm/one_shot.hpp>
#include <pdp/comm/message/algorithm/pairwise.hpp>
#include <pdp/comm/message/algorithm/rabenseifner.hpp>
#include <pdp/comm/message/algorithm/rank_ordered.hpp>
#include <pdp/comm/message/algorithm/recursive_doubling.hpp>
#include <pdp/comm/message/algorithm/ring.hpp>
#include <pdp/comm/message/algorithm/table.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::algorithm {

/// The sizes of a collective, in elements: `count` if it is the same for every rank, else `shards`. all_to_all sends `shards` and receives
/// `received`.
struct Extent {
  std::size_t count = 0;
  Shards shards{};
  Shards received{};
};

/// Writes the steps of one rank for an all-reduce of `count` elements by the given algorithm.
constexpr void all_reduce(Schedule& schedule, AllReduce algorithm, int rank, int size, std::size_t count) {
  switch (algorithm) {
    case AllReduce::one_shot:
      return one_shot_all_reduce(schedule, rank, size, count);
    case AllReduce::recursive_doubling:
      return recursive_doubling_all_reduce(schedule, rank, size, count);
    case AllReduce::rabenseifner:
      return rabenseifner_all_reduce(schedule, rank, size, count);
    case AllReduce::ring:
      return ring_all_reduce(schedule, rank, size, count);
  }
}

/// The order in which a reduction combines values: any order, so that the fastest algorithm is used, or the order of ranks.
enum class Order : unsigned char { any, of_ranks };

/// Clears the schedule and writes the steps of one rank for a collective.
constexpr void select(Schedule& schedule, Verb verb, int rank, int size, int root, const Extent& extent, std::size_t element_bytes,
                      Order order = Order::any) {
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
      return order == Order::of_ranks ? rank_ordered_reduce(schedule, rank, size, root, count)
                                      : binomial_reduce(schedule, rank, size, root, count);
    case Verb::all_reduce:
      return all_reduce(schedule, order == Order::of_ranks ? AllReduce::one_shot : choose(size, count * element_bytes), rank, size, count);
    case Verb::reduce_scatter:
      return order == Order::of_ranks ? rank_ordered_reduce_scatter(schedule, rank, size, extent.shards)
                                      : ring_reduce_scatter(schedule, rank, size, extent.shards);
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
