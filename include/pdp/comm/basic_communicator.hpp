#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// A contiguous range of elements, such as an array, a vector or a span.
template <class R>
concept Elements =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::remove_cv_t<std::ranges::range_value_t<R>>>;
/// A range of elements that a call can write to.
template <class R>
concept WritableElements = Elements<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
/// Whether a range type guarantees that its elements are in host memory. A span, or a container with an allocator of its own, does not.
template <class R>
inline constexpr bool lies_on_host = false;
template <class T>
inline constexpr bool lies_on_host<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool lies_on_host<std::array<T, N>> = true;
/// A reduction operation for the elements of a range.
template <class O, class R>
concept CombinesElements = Combines<O, std::remove_cv_t<std::ranges::range_value_t<R>>>;

/// One rank of a group, with the typed verbs of any backend. Use it in one thread only.
///
/// A blocking verb such as send() is its asynchronous form, send_async(), and a wait. A Work must not outlive its communicator. `counts[r]`
/// is the number of elements in the shard of rank r; every rank passes the same counts. Without counts, all shards have the same size.
///
/// A verb throws ConfigError or ShapeError if its arguments are invalid on this rank; the group stays usable. Once the world has failed,
/// every verb throws a CommunicationError: PeerLost, Timeout or MismatchedCollective.
template <Calls C>
class BasicCommunicator {
 public:
  static constexpr Traits traits = traits_of<C>;
  using Work = typename C::Work;
  using Erased = C;

  explicit BasicCommunicator(C calls) : calls_{std::move(calls)} {}

  [[nodiscard]] int rank() const { return calls_.rank(); }
  [[nodiscard]] int size() const { return calls_.size(); }
  [[nodiscard]] Duration deadline() const { return calls_.deadline(); }
  /// Sets how long a call may wait, for all groups of this world. The default is 5 minutes.
  void deadline(Duration duration) { calls_.deadline(duration); }
  /// Sets how long a rank may be silent before the world fails. The default is 10 s; zero means for ever. All ranks must set the same
  /// duration. A rank sends its heartbeats while it computes, too, so the duration may be shorter than a step.
  void heartbeat(Duration duration) requires requires(C& calls) { calls.heartbeat(duration); }
  { calls_.heartbeat(duration); }
  /// Advances calls in flight without waiting.
  void progress() { calls_.progress(); }
  /// Sleeps until calls in flight may have advanced, at the latest until the given time. Use it to wait for the first of several Works
  /// to complete. A rank that waits here takes no part in the detection of deadlocks.
  void wait_for_progress(TimePoint until) { comm::wait_for_progress(calls_, until); }
  /// Ends the world. Every rank throws PeerLost with this rank and this reason from its next call on. Over NCCL only this rank throws. Over
  /// MPI the whole job ends.
  void abort(const std::string& reason) { calls_.abort(reason); }

  /// Sends values to rank `peer` of this group. Tags are 0 or more.
  Work send_async(Elements auto&& values, int peer, int tag = 0) {
    return calls_.start({.verb = Verb::send, .in = memory(values), .to = peer, .tag = tag});
  }
  /// Receives values from rank `peer` of this group, which must send as many values of the same type with the same tag.
  Work recv_async(WritableElements auto&& values, int peer, int tag = 0) {
    return calls_.start({.verb = Verb::send, .out = memory(values), .from = peer, .tag = tag});
  }
  /// Sends and receives at once, so that ranks can exchange messages without an agreed order. `to` or `from` may be no_peer, which skips
  /// that half.
  Work send_recv_async(Elements auto&& out, int to, WritableElements auto&& in, int from, int tag = 0) {
    return calls_.start({.verb = Verb::send, .in = memory(out), .out = memory(in), .to = to, .from = from, .tag = tag});
  }

  /// Starts a barrier, which is complete once all ranks of this group have started it.
  Work barrier_async() { return calls_.start({.verb = Verb::barrier}); }
  /// Copies the values of the root to all ranks.
  Work broadcast_async(WritableElements auto&& values, int root) { return calls_.start(in_place(Verb::broadcast, values, root)); }
  /// Reduces to the root, in place. The values of the other ranks stay unchanged.
  template <WritableElements R>
  Work reduce_async(R&& values, CombinesElements<R> auto operation, int root) {
    return calls_.start(in_place(Verb::reduce, values, root, reducer(values, operation)));
  }
  /// Reduces in place. The results are bitwise equal on all ranks.
  template <WritableElements R>
  Work all_reduce_async(R&& values, CombinesElements<R> auto operation) {
    return calls_.start(in_place(Verb::all_reduce, values, no_root, reducer(values, operation)));
  }
  /// Reduces `whole` and writes this rank's shard of the result to `shard`, which may be this rank's part of `whole`.
  template <WritableElements R>
  Work reduce_scatter_async(Elements auto&& whole, R&& shard, CombinesElements<R> auto operation) {
    return reduce_scatter_async(whole, shard, Counts{}, operation);
  }
  template <WritableElements R>
  Work reduce_scatter_async(Elements auto&& whole, R&& shard, Counts counts, CombinesElements<R> auto operation) {
    return calls_.start(in_shards(Verb::reduce_scatter, whole, shard, counts, no_root, reducer(shard, operation)));
  }
  /// Gathers the shards of all ranks in `whole`, in the order of ranks. `shard` may be this rank's part of `whole`.
  Work all_gather_async(Elements auto&& shard, WritableElements auto&& whole, Counts counts = {}) {
    return calls_.start(in_shards(Verb::all_gather, shard, whole, counts));
  }
  /// Gathers the shards of all ranks in `whole` of the root. The other ranks do not use `whole`, which may be empty there.
  Work gather_async(Elements auto&& shard, WritableElements auto&& whole, int root) { return gather_async(shard, whole, Counts{}, root); }
  Work gather_async(Elements auto&& shard, WritableElements auto&& whole, Counts counts, int root) {
    return calls_.start(in_shards(Verb::gather, shard, whole, counts, root));
  }
  /// Distributes `whole` of the root: each rank receives its shard. The other ranks do not use `whole`, which may be empty there.
  Work scatter_async(Elements auto&& whole, WritableElements auto&& shard, int root) { return scatter_async(whole, shard, Counts{}, root); }
  Work scatter_async(Elements auto&& whole, WritableElements auto&& shard, Counts counts, int root) {
    return calls_.start(in_shards(Verb::scatter, whole, shard, counts, root));
  }
  /// Sends shard p of `in` to rank p, and receives shard p of `out` from rank p. Throws ConfigError if `in` and `out` overlap.
  Work all_to_all_async(Elements auto&& in, WritableElements auto&& out) { return all_to_all_async(in, Counts{}, out, Counts{}); }
  /// The same with shards of different sizes: `sent[p]` of this rank must equal `received[rank()]` of rank p.
  Work all_to_all_async(Elements auto&& in, Counts sent, WritableElements auto&& out, Counts received) {
    return calls_.start(from_each_to_each(in, sent, out, received));
  }

  /// The blocking verbs: each starts the asynchronous call of the same name and waits for it.
  void send(Elements auto&& values, int peer, int tag = 0) { send_async(values, peer, tag).wait(); }
  void recv(WritableElements auto&& values, int peer, int tag = 0) { recv_async(values, peer, tag).wait(); }
  void send_recv(Elements auto&& out, int to, WritableElements auto&& in, int from, int tag = 0) {
    send_recv_async(out, to, in, from, tag).wait();
  }
  void barrier() { complete(calls_, {.verb = Verb::barrier}); }
  void broadcast(WritableElements auto&& values, int root) { complete(calls_, in_place(Verb::broadcast, values, root)); }
  template <WritableElements R>
  void reduce(R&& values, CombinesElements<R> auto operation, int root) {
    complete(calls_, in_place(Verb::reduce, values, root, reducer(values, operation)));
  }
  template <WritableElements R>
  void all_reduce(R&& values, CombinesElements<R> auto operation) {
    complete(calls_, in_place(Verb::all_reduce, values, no_root, reducer(values, operation)));
  }
  template <WritableElements R>
  void reduce_scatter(Elements auto&& whole, R&& shard, CombinesElements<R> auto operation) {
    reduce_scatter(whole, shard, Counts{}, operation);
  }
  template <WritableElements R>
  void reduce_scatter(Elements auto&& whole, R&& shard, Counts counts, CombinesElements<R> auto operation) {
    complete(calls_, in_shards(Verb::reduce_scatter, whole, shard, counts, no_root, reducer(shard, operation)));
  }
  void all_gather(Elements auto&& shard, WritableElements auto&& whole, Counts counts = {}) {
    complete(calls_, in_shards(Verb::all_gather, shard, whole, counts));
  }
  void gather(Elements auto&& shard, WritableElements auto&& whole, int root) { gather(shard, whole, Counts{}, root); }
  void gather(Elements auto&& shard, WritableElements auto&& whole, Counts counts, int root) {
    complete(calls_, in_shards(Verb::gather, shard, whole, counts, root));
  }
  void scatter(Elements auto&& whole, WritableElements auto&& shard, int root) { scatter(whole, shard, Counts{}, root); }
  void scatter(Elements auto&& whole, WritableElements auto&& shard, Counts counts, int root) {
    complete(calls_, in_shards(Verb::scatter, whole, shard, counts, root));
  }
  void all_to_all(Elements auto&& in, WritableElements auto&& out) { all_to_all(in, Counts{}, out, Counts{}); }
  void all_to_all(Elements auto&& in, Counts sent, WritableElements auto&& out, Counts received) {
    complete(calls_, from_each_to_each(in, sent, out, received));
  }

  /// Starts together all calls that `start` makes. Wait for their Works after grouped() returns: a backend may start no call before it
  /// knows the last. If two ranks group the same messages, the messages may go in both directions, even on a backend that queues messages
  /// (QueuesMessages). An exception from `start` may end the world.
  template <std::invocable F>
  void grouped(F&& start) {
    if constexpr (GroupsCalls<C>) {
      calls_.begin_group();
      try {
        start();
      } catch (...) {
        calls_.abort(text("rank ", rank(), " left grouped() by an exception before it made all calls"));
        throw;
      }
      calls_.end_group();
    } else {
      start();
    }
  }

  /// Allocates zeroed memory for `count` values, of the kind that suits the backend best. Every rank of this group must call it with the
  /// same count.
  template <Element T>
  [[nodiscard]] Registered<T, traits.device_buffers> allocate(std::size_t count) {
    return Registered<T, traits.device_buffers>{allocate_region(calls_, count * sizeof(T))};
  }

  /// Returns whether every rank of this group can access the memory that allocate() returns to the others. True over Thread, Shm and
  /// Default if the group has several ranks and all are on one host. Otherwise false. The result is the same on all ranks.
  [[nodiscard]] bool shares_memory() const { return comm::shares_memory(calls_); }

  /// Returns the group of the ranks that pass the same color, ordered by key and then by rank. Every rank of this group must call it.
  [[nodiscard]] BasicCommunicator split(int color, int key) { return BasicCommunicator{calls_.split(color, key)}; }

  /// Moves the type-erased calls out, for a wrapper. This communicator is empty afterwards.
  [[nodiscard]] C release() { return std::move(calls_); }
  /// Returns the type-erased calls below the typed verbs.
  [[nodiscard]] C& erased() { return calls_; }
  [[nodiscard]] const C& erased() const { return calls_; }

 private:
  static Request in_place(Verb verb, WritableElements auto& values, int root, Reducer reducer = {}) {
    return {.verb = verb, .in = memory(values), .out = memory(values), .root = root, .reducer = reducer};
  }
  static Request in_shards(Verb verb, Elements auto& in, WritableElements auto& out, Counts counts, int root = no_root,
                           Reducer reducer = {}) {
    return {.verb = verb, .in = memory(in), .out = memory(out), .counts = counts, .root = root, .reducer = reducer};
  }
  static Request from_each_to_each(Elements auto& in, Counts sent, WritableElements auto& out, Counts received) {
    return {.verb = Verb::all_to_all, .in = memory(in), .out = memory(out), .counts = sent, .received = received};
  }
  template <Elements R>
  static ErasedSpan memory(R& elements) {
    static_assert(!traits.device_buffers || !lies_on_host<std::remove_cv_t<R>>,
                  "pdp: this communicator takes GPU memory, but was given host memory; put the values into a cuda::Memory or "
                  "world.allocate<T>(count), or use a communicator of host memory");
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(std::ranges::data(elements))), std::ranges::size(elements), sizeof(E),
            dtype_of<E>};
  }
  template <Elements R, Operation O>
  Reducer reducer(R&, O) const {
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    if constexpr (O::reduction == Reduction::average) {
      if (size() > most_averaged<E>)
        throw ConfigError{text("rank ", rank(), ": an average of ", name(dtype_of<E>), " values was requested in a group of ", size(),
                               " ranks, but ", name(dtype_of<E>), " represents whole numbers exactly only up to ", most_averaged<E>,
                               "; average a wider type, such as float, or divide a sum")};
    }
    return {O::reduction, comm::combine<E, O>, O::reduction == Reduction::average ? comm::divide<E> : nullptr};
  }

  C calls_;
};

}  // namespace pdp::comm
