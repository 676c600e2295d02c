#pragma once

#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// What a rank of a group finds wrong with a call before it begins: what cannot be right, whatever the other ranks do. All backends say it
/// in the same words, and the group goes on after it.
///
/// Throws ConfigError for ranks, tags and memory that cannot be meant, ShapeError for sizes and types that do not fit together.
struct CallChecks {
  /// Where the shards begin that a call was given counts for: memory for it, used again.
  using Begins = std::vector<std::size_t>;

  int rank = 0;
  int size = 1;

  void root(Verb verb, int root) const;
  void one_type(Verb verb, const Memory& in, const Memory& out) const;
  void message(const Memory& out, int to, const Memory& in, int from, int tag) const;
  /// Gives the shards of a call that has one for each rank. `root`: of gather and scatter; elsewhere they have no whole.
  [[nodiscard]] Shards shards(Verb verb, const Memory& whole, const Memory& shard, Counts counts, int root, Begins& begins) const;
  /// Gives the shards that are sent and those that are received.
  [[nodiscard]] std::pair<Shards, Shards> all_to_all(const Memory& in, Counts sent, const Memory& out, Counts received,
                                                     std::array<Begins, 2>& begins) const;

 private:
  void peer(const char* does, int peer, int tag) const;
  Shards cut(Verb verb, const Memory* whole, const Memory* shard, Counts counts, Begins& begins) const;
};

inline void CallChecks::root(Verb verb, int root) const {
  if (root < 0 || root >= size)
    throw ConfigError{text(name(verb), " on rank ", rank, " names root ", root, ", but the group has ranks 0 to ", size - 1)};
}

inline void CallChecks::one_type(Verb verb, const Memory& in, const Memory& out) const {
  if (in.type != out.type)
    throw ShapeError{
        text(name(verb), " on rank ", rank, " reads ", name(in.type), " and writes ", name(out.type), "; both must be of one type")};
}

inline void CallChecks::peer(const char* does, int peer, int tag) const {
  if (peer < 0 || peer >= size) throw ConfigError{text("rank ", rank, " cannot ", does, " rank ", peer, " of a group of ", size, " ranks")};
  if (peer == rank) throw ConfigError{text("rank ", rank, " cannot ", does, " itself; copy the values")};
  if (tag < 0) throw ConfigError{text("rank ", rank, " cannot ", does, " rank ", peer, " with tag ", tag, "; tags are 0 or more")};
}

inline void CallChecks::message(const Memory& out, int to, const Memory& in, int from, int tag) const {
  if (to != nobody) peer("send to", to, tag);
  if (from != nobody) peer("receive from", from, tag);
  if (to != nobody && from != nobody && in.type != out.type)
    throw ShapeError{
        text("send_recv on rank ", rank, " sends ", name(out.type), " and receives ", name(in.type), "; both must be of one type")};
}

inline Shards CallChecks::shards(Verb verb, const Memory& whole, const Memory& shard, Counts counts, int root, Begins& begins) const {
  const bool rooted = verb == Verb::gather || verb == Verb::scatter;
  if (rooted) this->root(verb, root);
  return cut(verb, rooted && rank != root ? nullptr : &whole, &shard, counts, begins);
}

inline std::pair<Shards, Shards> CallChecks::all_to_all(const Memory& in, Counts sent, const Memory& out, Counts received,
                                                        std::array<Begins, 2>& begins) const {
  const bool equal = sent.empty() && received.empty();
  if (equal && in.count != out.count)
    throw ShapeError{text("all_to_all on rank ", rank, " reads ", in.count, " elements and writes ", out.count, "; both must be as many")};
  if (in.data < out.data + out.bytes() && out.data < in.data + in.bytes())
    throw ConfigError{text("all_to_all on rank ", rank, " reads and writes the same memory; it cannot work in place")};
  const auto ranks = as_size(size);
  const Memory one_in{.count = in.count / ranks}, one_out{.count = out.count / ranks};
  const Shards sending = cut(Verb::all_to_all, &in, equal ? &one_in : nullptr, sent, begins[0]);
  const Shards receiving = cut(Verb::all_to_all, &out, equal ? &one_out : nullptr, received, begins[1]);
  return {sending, receiving};
}

/// `whole` and `shard`: null where this rank has none.
inline Shards CallChecks::cut(Verb verb, const Memory* whole, const Memory* shard, Counts counts, Begins& begins) const {
  const auto ranks = as_size(size);
  if (counts.empty() && shard != nullptr) {
    if (whole != nullptr && whole->count != shard->count * ranks)
      throw ShapeError{text(name(verb), " on rank ", rank, ": the whole must be ", size, " shards of ", shard->count, " elements, ",
                            shard->count * ranks, ", but it has ", whole->count)};
    return Shards{shard->count};
  }
  if (counts.size() != ranks)
    throw ShapeError{text(name(verb), " on rank ", rank, " was given ", counts.size(), " counts for ", size, " ranks")};
  begins.assign(ranks + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), begins.begin() + 1);
  if (shard != nullptr && shard->count != counts[as_size(rank)])
    throw ShapeError{text(name(verb), " on rank ", rank, ": the counts give this rank ", counts[as_size(rank)],
                          " elements, but its shard has ", shard->count)};
  if (whole != nullptr && whole->count != begins.back())
    throw ShapeError{
        text(name(verb), " on rank ", rank, ": the counts add up to ", begins.back(), " elements, but the whole has ", whole->count)};
  return Shards{std::span<const std::size_t>{begins}};
}

}  // namespace pdp::comm
