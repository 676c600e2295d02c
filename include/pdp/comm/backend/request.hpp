#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include <pdp/comm/operation.hpp>
#include <pdp/core/dtype.hpp>

namespace pdp::comm {

/// A span of elements with an erased type. `data` is not const, but a call writes only to its outputs.
struct ErasedSpan {
  std::byte* data = nullptr;
  std::size_t count = 0;    // elements
  std::size_t element = 1;  // bytes of one
  DType type = DType::byte;

  [[nodiscard]] std::size_t bytes() const { return count * element; }
  /// Returns the part of `size` elements that begins at element `begin`.
  [[nodiscard]] ErasedSpan part(std::size_t begin, std::size_t size) const { return {data + begin * element, size, element, type}; }
};

/// How a call combines values of one type.
struct Reducer {
  Reduction reduction = Reduction::none;
  Combine combine = nullptr;
  void (*divide)(std::byte*, std::size_t, int) = nullptr;  // for an average: divides the complete sum
};

/// Elements of the shard of each rank; empty if all shards have the same size.
using Counts = std::span<const std::size_t>;

/// Returns the number of elements in all shards.
constexpr std::size_t total(Counts counts) {
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

/// No peer: skips that half of an exchange.
inline constexpr int no_peer = std::numeric_limits<int>::min();
/// The root of a call that has none.
inline constexpr int no_root = -1;

/// Returns whether a call combines values of several ranks.
constexpr bool reduces(Verb verb) { return verb == Verb::reduce || verb == Verb::all_reduce || verb == Verb::reduce_scatter; }
/// Returns whether the input of a call is a whole, which is cut into one shard for each rank.
constexpr bool spreads(Verb verb) { return verb == Verb::reduce_scatter || verb == Verb::scatter; }
/// Returns whether a call cuts a whole into one shard for each rank, or joins the shards to a whole.
constexpr bool has_shards(Verb verb) { return spreads(verb) || verb == Verb::all_gather || verb == Verb::gather; }
/// Returns whether only the root of a call with shards has the whole.
constexpr bool has_rooted_whole(Verb verb) { return verb == Verb::gather || verb == Verb::scatter; }

/// One call of a group. Fields that its verb does not use keep their defaults.
///
/// - broadcast, reduce, all_reduce: `in` and `out` are the same memory, with the same number of elements on every rank.
/// - reduce_scatter, scatter: `in` is the whole, `out` this rank's shard. all_gather, gather: the other way round.
/// - all_to_all: `in` has a shard for each rank, `out` a shard from each.
/// - send: a message from `in` to rank `to`, a message from rank `from` into `out`, or both.
struct Request {
  Verb verb = Verb::barrier;
  ErasedSpan in{};             // read
  ErasedSpan out{};            // written
  Counts counts{};             // of the shards; all_to_all: of the shards that this rank sends
  Counts received{};           // all_to_all: of the shards that this rank receives
  int root = no_root;          // of broadcast, reduce, gather and scatter
  int to = no_peer;            // of a message
  int from = no_peer;          // of a message
  int tag = 0;                 // of a message
  Reducer reducer{};           // of a reduction
  bool waits_at_once = false;  // the caller waits for the call at once, so start() may complete it

  [[nodiscard]] const ErasedSpan& whole() const { return spreads(verb) ? in : out; }
  [[nodiscard]] const ErasedSpan& shard() const { return spreads(verb) ? out : in; }
  /// For all_to_all: returns whether all shards have the same size.
  [[nodiscard]] bool is_even() const { return counts.empty() && received.empty(); }
};

}  // namespace pdp::comm
