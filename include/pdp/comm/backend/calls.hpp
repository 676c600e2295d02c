#pragma once

#include <chrono>
#include <concepts>
#include <limits>
#include <span>
#include <string>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/work.hpp>

namespace pdp::comm {

/// A span of elements, its type erased. What a call only reads is never written through it.
struct Memory {
  std::byte* data = nullptr;
  std::size_t count = 0;    // elements
  std::size_t element = 1;  // bytes of one
  DType type = DType::byte;

  [[nodiscard]] std::size_t bytes() const { return count * element; }
};

/// How a call combines values of one type.
struct Reducer {
  Reduction reduction = Reduction::none;
  Combine combine = nullptr;
  void (*divide)(std::byte*, std::size_t, int) = nullptr;  // of an average, once the sum is complete
};

/// Elements of each rank's shard, where these differ; empty where all are of one size.
using Counts = std::span<const std::size_t>;

/// Elements of all shards.
constexpr std::size_t total(Counts counts) {
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

/// A peer that there is none of: leaves out one half of an exchange.
inline constexpr int nobody = std::numeric_limits<int>::min();
/// Where a call has no root.
inline constexpr int no_root = -1;
/// How long a call may wait, unless the user says otherwise.
inline constexpr Duration default_deadline = std::chrono::minutes{5};

/// One rank of a group, and its calls with the types of their elements erased. It is what a backend provides, and what one that wraps
/// another wraps; BasicCommunicator makes the typed verbs of it. It checks what it is given. Calls are in flight when they return.
///
/// - collective(verb, in, out, root, reducer): every rank brings as much (barrier, broadcast, reduce, all_reduce).
/// - collective(verb, whole, shard, counts, root, reducer): a shard for each rank (reduce_scatter, all_gather, gather, scatter).
/// - all_to_all(in, sent, out, received): a shard from each rank for each.
/// - exchange(out, to, in, from, tag): a message to one rank, from another one, or both.
template <class C>
concept Calls = std::movable<C> && requires(C& calls, const C& observed, Memory memory, Counts counts, int number, Reducer reducer,
                                            Duration duration, const std::string& reason) {
  requires Waitable<typename C::Work>;
  { observed.rank() } -> std::same_as<int>;
  { observed.size() } -> std::same_as<int>;
  { observed.deadline() } -> std::same_as<Duration>;
  calls.deadline(duration);
  calls.progress();
  calls.abort(reason);
  { calls.collective(Verb::all_reduce, memory, memory, number, reducer) } -> std::same_as<typename C::Work>;
  { calls.collective(Verb::all_gather, memory, memory, counts, number, reducer) } -> std::same_as<typename C::Work>;
  { calls.all_to_all(memory, counts, memory, counts) } -> std::same_as<typename C::Work>;
  { calls.exchange(memory, number, memory, number, number) } -> std::same_as<typename C::Work>;
  { calls.split(/*color*/ number, /*key*/ number) } -> std::same_as<C>;
};

/// A backend that is faster at a call that it need not return from before it is complete.
template <class C>
concept BlockingCalls = Calls<C> && requires(C& calls, Memory memory, Counts counts, int number, Reducer reducer) {
  calls.complete_collective(Verb::all_reduce, memory, memory, number, reducer);
  calls.complete_collective(Verb::all_gather, memory, memory, counts, number, reducer);
  calls.complete_all_to_all(memory, counts, memory, counts);
};
template <Calls C>
void complete_collective(C& calls, Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  if constexpr (BlockingCalls<C>)
    calls.complete_collective(verb, in, out, root, reducer);
  else
    calls.collective(verb, in, out, root, reducer).wait();
}
template <Calls C>
void complete_collective(C& calls, Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  if constexpr (BlockingCalls<C>)
    calls.complete_collective(verb, whole, shard, counts, root, reducer);
  else
    calls.collective(verb, whole, shard, counts, root, reducer).wait();
}
template <Calls C>
void complete_all_to_all(C& calls, Memory in, Counts sent, Memory out, Counts received) {
  if constexpr (BlockingCalls<C>)
    calls.complete_all_to_all(in, sent, out, received);
  else
    calls.all_to_all(in, sent, out, received).wait();
}

/// A backend that has memory of its own for the values of its calls (see Region). Every rank of the group asks for as many bytes.
template <class C>
concept AllocatesRegions = Calls<C> && requires(C& calls, std::size_t bytes) {
  { calls.allocate(bytes) } -> std::same_as<Region>;
};
template <Calls C>
Region allocate_region(C& calls, std::size_t bytes) {
  if constexpr (AllocatesRegions<C>)
    return calls.allocate(bytes);
  else
    return Region::ordinary(bytes);
}

/// Whether every rank of the group sees the memory of all (see Registered::of).
template <Calls C>
bool shares_memory(const C& calls) {
  if constexpr (requires { calls.shares_memory(); })
    return calls.shares_memory();
  else
    return false;
}

/// A backend whose calls take memory of a device. What pdp tells the ranks itself lies on the host: exchange_records(mine, all) gathers as
/// many bytes of each, in the order of ranks.
template <class C>
concept DeviceCalls = Calls<C> && C::device_buffers && requires(C& calls, std::span<const std::byte> mine, std::span<std::byte> all) {
  calls.exchange_records(mine, all);
};
template <Calls C>
void exchange_records(C& calls, std::span<const std::byte> mine, std::span<std::byte> all) {
  if constexpr (DeviceCalls<C>)
    calls.exchange_records(mine, all);
  else
    calls
        .collective(Verb::all_gather, Memory{all.data(), all.size()}, Memory{const_cast<std::byte*>(mine.data()), mine.size()}, Counts{},
                    no_root, Reducer{})
        .wait();
}

/// A backend that carries out calls one after another, unless it is told that some belong together: those between the two.
template <class C>
concept GroupsCalls = Calls<C> && requires(C& calls) {
  calls.begin_group();
  calls.end_group();
};

}  // namespace pdp::comm
