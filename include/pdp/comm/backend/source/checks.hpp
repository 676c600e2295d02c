#pragma once

/// Definitions for pdp/comm/backend/checks.hpp; see pdp/core/separate_compilation.hpp.

#include <array>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE CheckedRequest CallChecks::check(const Request& request, std::array<Begins, 2>& begins) const {
  const Verb verb = request.verb;
  if (verb == Verb::send) {
    message(request);
    const ErasedSpan& either = request.to != no_peer ? request.in : request.out;
    return {.envelope = {.count = either.count, .tag = request.tag, .verb = verb, .type = either.type}, .shards{}, .received{}};
  }
  CheckedRequest checked{
      .envelope = {.count = request.in.count, .root = request.root, .verb = verb, .reduction = request.reducer.reduction},
      .shards{},
      .received{}};
  if (verb == Verb::broadcast || verb == Verb::reduce) root(request);
  if (has_shards(verb)) {
    checked.shards = shards(request, begins[0]);
    checked.envelope.count = request.counts.empty() ? request.shard().count : checked.shards.begin(size);
  } else if (verb == Verb::all_to_all) {
    // With counts, each pair of ranks may exchange a different amount. Then only the messages show whether two ranks agree.
    all_to_all(request, begins, checked);
    checked.envelope.count = request.is_even() ? request.in.count / as_size(size) : 0;
  }
  one_type(request);
  checked.envelope.type = request.in.type;
  return checked;
}

PDP_INLINE void CallChecks::root(const Request& request) const {
  if (request.root < 0 || request.root >= size)
    throw ConfigError{text(name(request.verb), " on rank ", rank, " names root ", request.root, ", but the size of the group is ", size,
                           "; ranks count from 0")};
}

PDP_INLINE void CallChecks::one_type(const Request& request) const {
  if (request.in.type != request.out.type)
    throw ShapeError{text(name(request.verb), " on rank ", rank, " reads ", name(request.in.type), " and writes ", name(request.out.type),
                          "; both must be of one type")};
}

PDP_INLINE void CallChecks::peer(const char* does, int peer, int tag) const {
  if (peer < 0 || peer >= size) throw ConfigError{text("rank ", rank, " cannot ", does, " rank ", peer, " of a group of ", size, " ranks")};
  if (peer == rank) throw ConfigError{text("rank ", rank, " cannot ", does, " itself; copy the values")};
  if (tag < 0) throw ConfigError{text("rank ", rank, " cannot ", does, " rank ", peer, " with tag ", tag, "; tags are 0 or more")};
}

PDP_INLINE void CallChecks::message(const Request& request) const {
  const auto& [in, out, to, from] = std::tie(request.in, request.out, request.to, request.from);
  if (to != no_peer) peer("send to", to, request.tag);
  if (from != no_peer) peer("receive from", from, request.tag);
  if (to != no_peer && from != no_peer && in.type != out.type)
    throw ShapeError{
        text("send_recv on rank ", rank, " sends ", name(in.type), " and receives ", name(out.type), "; both must be of one type")};
}

PDP_INLINE Shards CallChecks::shards(const Request& request, Begins& begins) const {
  const bool rooted = has_rooted_whole(request.verb);
  if (rooted) root(request);
  return cut(request.verb, rooted && rank != request.root ? nullptr : &request.whole(), &request.shard(), request.counts, begins);
}

PDP_INLINE void CallChecks::all_to_all(const Request& request, std::array<Begins, 2>& begins, CheckedRequest& checked) const {
  const auto& [in, out] = std::tie(request.in, request.out);
  const bool equal = request.is_even();
  if (equal && in.count != out.count)
    throw ShapeError{
        text("all_to_all on rank ", rank, " reads ", in.count, " elements and writes ", out.count, "; the counts must be equal")};
  if (in.data < out.data + out.bytes() && out.data < in.data + in.bytes())
    throw ConfigError{text("all_to_all on rank ", rank, " reads and writes the same memory; it cannot work in place")};
  const auto ranks = as_size(size);
  const ErasedSpan one_in{.count = in.count / ranks}, one_out{.count = out.count / ranks};
  checked.shards = cut(Verb::all_to_all, &in, equal ? &one_in : nullptr, request.counts, begins[0]);
  checked.received = cut(Verb::all_to_all, &out, equal ? &one_out : nullptr, request.received, begins[1]);
}

/// `whole` and `shard`: null if this rank has none.
PDP_INLINE Shards CallChecks::cut(Verb verb, const ErasedSpan* whole, const ErasedSpan* shard, Counts counts, Begins& begins) const {
  const auto ranks = as_size(size);
  if (counts.empty() && shard != nullptr) {
    if (whole != nullptr && whole->count != shard->count * ranks)
      throw ShapeError{text(name(verb), " on rank ", rank, ": the whole must have ", shard->count * ranks, " elements (", size,
                            " shards of ", shard->count, "), but it has ", whole->count)};
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
