#pragma once

#include <concepts>
#include <span>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/work.hpp>

namespace pdp::comm {

/// A group of ranks 0 .. size() - 1, of which this process (or thread) is rank().
///
/// Every rank of a group calls the same collectives in the same order, with the same sizes and types. Where one does otherwise, ranks
/// throw MismatchedCollective, which shows both calls. A group that has thrown a CommunicationError stays aborted, and each later call says
/// why.
template <class C>
concept Group = std::movable<C> && requires(const C& group) {
  { group.rank() } -> std::same_as<int>;
  { group.size() } -> std::same_as<int>;
};

/// Messages between two ranks. Those of one pair with one tag (0 or more) arrive in the order in which they were sent.
template <class C, class T = float>
concept PointToPoint = Group<C> && requires(C& group, std::span<const T> out, std::span<T> in, int peer, int tag) {
  { group.send_async(out, peer, tag) } -> std::same_as<typename C::Work>;
  { group.recv_async(in, peer, tag) } -> std::same_as<typename C::Work>;
  requires Waitable<typename C::Work>;
};

/// What every strategy may rely on. After all_reduce all ranks hold the same bits. Calls of one group run in the order in which they were
/// made; progress() moves those in flight without waiting.
template <class C, class T = float>
concept Communicator = PointToPoint<C, T> && requires(C& group, std::span<T> values, int root) {
  group.barrier();
  group.broadcast(values, root);
  { group.all_reduce_async(values, Sum{}) } -> std::same_as<typename C::Work>;
  { group.split(/*color*/ root, /*key*/ root) } -> std::same_as<C>;
  group.progress();
};

/// What sharding needs beyond that: `whole` is size() equal shards, in the order of ranks.
template <class C, class T = float>
concept HasReduceScatter = Communicator<C, T> && requires(C& group, std::span<const T> whole, std::span<T> shard) {
  { group.reduce_scatter_async(whole, shard, Sum{}) } -> std::same_as<typename C::Work>;
  { group.all_gather_async(std::span<const T>{shard}, shard) } -> std::same_as<typename C::Work>;
};

/// What ranks need that see each other's memory and work there: see Registered::of.
template <class C, class T = float>
concept HasCommonMemory = Communicator<C, T> && requires(C& group, const C& observed, std::size_t count) {
  { observed.shares_memory() } -> std::same_as<bool>;
  { group.template allocate<T>(count).is_common() } -> std::same_as<bool>;
  { group.all_reduce_async(std::span<std::int64_t>{}, Max{}) } -> std::same_as<typename C::Work>;
};

/// A backend declares that no call outlives the group's deadline, and that a dead peer is told as PeerLost{rank}.
template <class C>
concept FailsFast = Group<C> && C::fails_fast && requires(const C& group) {
  { group.deadline() } -> std::same_as<Duration>;
};

/// A backend declares that reductions are carried out in the order of ranks, so that all runs on as many ranks give the same bits, and
/// those of a serial program that adds in this order.
template <class C>
concept RankOrdered = Group<C> && C::rank_ordered;

/// A backend declares that the spans of its calls are memory of a device, which the host cannot touch.
template <class C>
concept HasDeviceBuffers = Group<C> && C::device_buffers;

/// A backend declares that asynchronous calls that are waited for on a stream may be recorded with it: each time the record is carried out,
/// so are they. All ranks of a group record a call, or none; and they carry out together what they have recorded together.
template <class C>
concept RecordsCalls = HasDeviceBuffers<C> && C::records_calls;

/// A backend declares that a group carries out messages one after another, as it does collectives: where a message that a rank asks for
/// comes late, all that the rank makes after it in that group comes later. So the ranks make the messages between them in one order,
/// whatever their tags; those that go both ways start together (see grouped, and send_recv), and those that may pass others go in a group
/// of their own.
template <class C>
concept QueuesMessages = Group<C> && C::queues_messages;

/// A backend declares that its groups have one rank each, so that a call in place does nothing, wherever the memory is.
template <class C>
concept Alone = Group<C> && C::alone;

/// A backend has a name, by which a command line chooses it and errors call it.
template <class C>
concept Named = requires {
  { C::name } -> std::convertible_to<std::string_view>;
};
/// Empty where it has none.
template <class C>
constexpr std::string_view name_of() {
  if constexpr (Named<C>)
    return C::name;
  else
    return {};
}

}  // namespace pdp::comm
