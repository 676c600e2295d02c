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

/// Something that lies in memory as a span of elements: an array, a vector, a span.
template <class R>
concept Elements =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::remove_cv_t<std::ranges::range_value_t<R>>>;
template <class R>
concept WritableElements = Elements<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
/// Elements that lie in memory of the host, whatever else there is: those of a span, or of memory with an allocator of its own, may not.
template <class R>
inline constexpr bool lies_on_host = false;
template <class T>
inline constexpr bool lies_on_host<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool lies_on_host<std::array<T, N>> = true;
/// An operation that the elements of a span can be combined by.
template <class O, class R>
concept CombinesElements = Combines<O, std::remove_cv_t<std::ranges::range_value_t<R>>>;

/// The typed verbs of any backend. One rank of a group; not shared between threads.
///
/// Blocking calls are asynchronous ones that wait. A Work must not outlive its communicator. Where a call takes `counts`, these are the
/// elements of each rank's shard, the same on all ranks; without them, shards are of one size.
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
  /// For all groups of this world.
  void deadline(Duration duration) { calls_.deadline(duration); }
  /// For how long a rank may give no sign of life before the world fails, 10 s unless set; zero: for ever. A rank gives them whatever it
  /// computes, so this need not be longer than its longest step. The same on all ranks.
  void heartbeat(Duration duration) requires requires(C& calls) { calls.heartbeat(duration); }
  { calls_.heartbeat(duration); }
  void progress() { calls_.progress(); }
  /// Ends the world: every rank throws PeerLost with this rank and this reason from its next call on.
  void abort(const std::string& reason) { calls_.abort(reason); }

  Work send_async(Elements auto&& values, int peer, int tag = 0) {
    return calls_.start({.verb = Verb::send, .in = memory(values), .to = peer, .tag = tag});
  }
  Work recv_async(WritableElements auto&& values, int peer, int tag = 0) {
    return calls_.start({.verb = Verb::send, .out = memory(values), .from = peer, .tag = tag});
  }
  /// Both at once, so that ranks may exchange without an order.
  Work send_recv_async(Elements auto&& out, int to, WritableElements auto&& in, int from, int tag = 0) {
    return calls_.start({.verb = Verb::send, .in = memory(out), .out = memory(in), .to = to, .from = from, .tag = tag});
  }

  Work barrier_async() { return calls_.start({.verb = Verb::barrier}); }
  /// The root's values, on all ranks.
  Work broadcast_async(WritableElements auto&& values, int root) { return calls_.start(in_place(Verb::broadcast, values, root)); }
  /// In place on the root; the values of the others stay.
  template <WritableElements R>
  Work reduce_async(R&& values, CombinesElements<R> auto operation, int root) {
    return calls_.start(in_place(Verb::reduce, values, root, reducer(values, operation)));
  }
  /// In place; the same bits on all ranks.
  template <WritableElements R>
  Work all_reduce_async(R&& values, CombinesElements<R> auto operation) {
    return calls_.start(in_place(Verb::all_reduce, values, no_root, reducer(values, operation)));
  }
  /// This rank's shard of the reduction of `whole`. The shard may lie in its place within the whole.
  template <WritableElements R>
  Work reduce_scatter_async(Elements auto&& whole, R&& shard, CombinesElements<R> auto operation) {
    return reduce_scatter_async(whole, shard, Counts{}, operation);
  }
  template <WritableElements R>
  Work reduce_scatter_async(Elements auto&& whole, R&& shard, Counts counts, CombinesElements<R> auto operation) {
    return calls_.start(in_shards(Verb::reduce_scatter, whole, shard, counts, no_root, reducer(shard, operation)));
  }
  /// The shards of all ranks, in the order of ranks. The shard may lie in its place within the whole.
  Work all_gather_async(Elements auto&& shard, WritableElements auto&& whole, Counts counts = {}) {
    return calls_.start(in_shards(Verb::all_gather, shard, whole, counts));
  }
  /// The shards of all ranks on the root; `whole` is not used elsewhere and may be empty there.
  Work gather_async(Elements auto&& shard, WritableElements auto&& whole, int root) { return gather_async(shard, whole, Counts{}, root); }
  Work gather_async(Elements auto&& shard, WritableElements auto&& whole, Counts counts, int root) {
    return calls_.start(in_shards(Verb::gather, shard, whole, counts, root));
  }
  /// Each rank's shard of the root's `whole`, which is not used elsewhere and may be empty there.
  Work scatter_async(Elements auto&& whole, WritableElements auto&& shard, int root) { return scatter_async(whole, shard, Counts{}, root); }
  Work scatter_async(Elements auto&& whole, WritableElements auto&& shard, Counts counts, int root) {
    return calls_.start(in_shards(Verb::scatter, whole, shard, counts, root));
  }
  /// Shard p of `in` goes to rank p, and shard p of `out` comes from there. The two may not overlap.
  Work all_to_all_async(Elements auto&& in, WritableElements auto&& out) { return all_to_all_async(in, Counts{}, out, Counts{}); }
  /// With shards of different size: what this rank sends to rank p must be what that one receives from here.
  Work all_to_all_async(Elements auto&& in, Counts sent, WritableElements auto&& out, Counts received) {
    return calls_.start(from_each_to_each(in, sent, out, received));
  }

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

  /// Starts all the calls that `start` makes together. Their Works outlive it, and are waited for after it: a backend may start none
  /// before the last one is known. So messages need no order that go both ways between ranks which start the same ones together, on a
  /// backend that queues them too.
  template <std::invocable F>
  void grouped(F&& start) {
    if constexpr (GroupsCalls<C>) {
      calls_.begin_group();
      try {
        start();
      } catch (...) {
        calls_.abort(text("rank ", rank(), " could not make all the calls that it wanted to start together"));
        throw;
      }
      calls_.end_group();
    } else {
      start();
    }
  }

  /// Memory for `count` values, zero at first, as the backend likes it best. Every rank of this group must call it, with the same count.
  template <Element T>
  [[nodiscard]] Registered<T, traits.device_buffers> allocate(std::size_t count) {
    return Registered<T, traits.device_buffers>{allocate_region(calls_, count * sizeof(T))};
  }

  /// Whether every rank of this group sees what allocate() gives to all of them: where there are several, on one host, in one process or
  /// over shared memory. The same on all of them.
  [[nodiscard]] bool shares_memory() const { return comm::shares_memory(calls_); }

  /// The group of those ranks that give the same colour, ordered by key and then by rank. Every rank of this group must call it.
  [[nodiscard]] BasicCommunicator split(int color, int key) { return BasicCommunicator{calls_.split(color, key)}; }

  /// What a wrapper wraps; this is empty after it.
  [[nodiscard]] C release() { return std::move(calls_); }
  /// The calls below the typed verbs.
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
                  "pdp: this communicator's calls take memory of a GPU, and were given memory of the host; put the values into a "
                  "cuda::Memory or into world.allocate<T>(count), or take a communicator of the host");
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(std::ranges::data(elements))), std::ranges::size(elements), sizeof(E),
            dtype_of<E>};
  }
  template <Elements R, Operation O>
  Reducer reducer(R&, O) const {
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    if constexpr (O::reduction == Reduction::average) {
      if (size() > most_averaged<E>)
        throw ConfigError{text("rank ", rank(), ": an average of ", name(dtype_of<E>), " values was asked for in a group of ", size(),
                               " ranks, but ", name(dtype_of<E>), " can count ", most_averaged<E>,
                               " at most; average a wider type, such as float, or divide a sum")};
    }
    return {O::reduction, comm::combine<E, O>, O::reduction == Reduction::average ? comm::divide<E> : nullptr};
  }

  C calls_;
};

}  // namespace pdp::comm
