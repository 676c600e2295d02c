#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/traits.hpp>
#include <pdp/comm/work.hpp>
#include <pdp/core/copyable.hpp>

namespace pdp::comm {

/// One rank of a group of ranks 0 .. size() - 1. This process (or thread) is rank().
///
/// Every rank of a group calls the same collectives in the same order, with the same sizes and types. If calls differ, ranks throw
/// MismatchedCollective, which shows both calls. Over MPI, Gloo and NCCL, only the wrapper Checked detects this reliably. A group that has
/// thrown a CommunicationError stays aborted: every later call throws the error again.
template <class C>
concept Group = Movable<C> && requires(const C& group) {
  { group.rank() } -> std::same_as<int>;
  { group.size() } -> std::same_as<int>;
};

/// Point-to-point messages. Messages between two ranks with the same tag (0 or more) arrive in the order in which they were sent. A Work
/// borrows the span of its call; see Waitable.
template <class C, class T = float>
concept PointToPoint = Group<C> && requires(C& group, std::span<const T> out, std::span<T> in, int peer, int tag) {
  { group.send_async(out, peer, tag) } -> std::same_as<typename C::Work>;
  { group.recv_async(in, peer, tag) } -> std::same_as<typename C::Work>;
  requires Waitable<typename C::Work>;
};

/// Collectives over equal shards: `whole` consists of size() equal shards, in the order of ranks.
template <class C, class T = float>
concept HasReduceScatter = Group<C> && requires(C& group, std::span<const T> whole, std::span<T> shard) {
  { group.reduce_scatter_async(whole, shard, Sum{}) } -> std::same_as<typename C::Work>;
  { group.all_gather_async(std::span<const T>{shard}, shard) } -> std::same_as<typename C::Work>;
};

/// Everything that a Trainer and its engine use, and so everything that a strategy may rely on. After all_reduce all ranks hold the same
/// bits. Calls of one group run in the order in which they were made. progress() advances calls in flight without waiting.
///
/// Besides values of T, ranks exchange integers, bytes and times.
template <class C, class T = float>
concept Communicator = PointToPoint<C, T> && HasReduceScatter<C, T> &&
    requires(C& group, std::span<T> values, std::span<const T> own, std::span<std::int64_t> numbers,
             std::span<const std::int64_t> own_numbers, std::span<double> times, std::span<std::byte> bytes,
             std::span<const std::size_t> counts, int root, std::size_t count) {
  group.barrier();
  { group.broadcast_async(values, root) } -> std::same_as<typename C::Work>;
  { group.all_reduce_async(values, Sum{}) } -> std::same_as<typename C::Work>;
  { group.all_reduce_async(numbers, Max{}) } -> std::same_as<typename C::Work>;
  group.broadcast(bytes, root);
  group.all_reduce(numbers, Min{});
  group.all_reduce(times, Sum{});
  group.all_gather(own_numbers, numbers);
  group.gather(own, values, counts, root);
  { group.template allocate<T>(count) } -> std::same_as<Registered<T, traits_of<C>.device_buffers>>;
  { group.split(/*color*/ root, /*key*/ root) } -> std::same_as<C>;
  group.progress();
};

/// A communicator that reports whether its ranks can access each other's memory; see Registered::of.
template <class C, class T = float>
concept HasCommonMemory = Communicator<C, T> && requires(const C& group) {
  { group.shares_memory() } -> std::same_as<bool>;
};

/// A communicator that declares a property. Each concept from here on tests one member of Traits, which describes the property.
template <class C>
concept FailsFast = Group<C> && traits_of<C>
.fails_fast&& requires(const C& group) {
  { group.deadline() } -> std::same_as<Duration>;
};
template <class C>
concept RankOrdered = Group<C> && traits_of<C>
.rank_ordered;
template <class C>
concept HasDeviceBuffers = Group<C> && traits_of<C>
.device_buffers;
template <class C>
concept RecordsCalls = HasDeviceBuffers<C> && traits_of<C>
.records_calls;
template <class C>
concept QueuesMessages = Group<C> && traits_of<C>
.queues_messages;
template <class C>
concept Alone = Group<C> && traits_of<C>
.alone;
template <class C>
concept Named = !traits_of<C>.name.empty();

}  // namespace pdp::comm
