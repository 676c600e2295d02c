#pragma once

#include <utility>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::cuda_thread {

inline void check_reduction(const Group& group, Verb verb, DType type, Reduction reduction) {
  if (kernel_of(type, reduction) == nullptr)
    throw ConfigError{text(name(verb), " on rank ", group.rank(), ": there is no ", name(reduction), " of ", name(type),
                           " on a GPU; floating-point numbers have sum, product, min, max and average")};
}

/// A call in which every rank brings as much.
inline Call& begin(Group& group, Verb verb, const Memory& in, const Memory& out, int root, const Reducer& reducer) {
  group.owner().check();
  if (verb == Verb::broadcast || verb == Verb::reduce) group.checks().root(verb, root);
  group.checks().one_type(verb, in, out);
  if (verb == Verb::reduce || verb == Verb::all_reduce) check_reduction(group, verb, in.type, reducer.reduction);
  group.check_memory(verb, in);
  if (out.data != in.data) group.check_memory(verb, out);
  Call& call = group.fresh({.count = in.count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction});
  call.in = in;
  call.out = out;
  return group.start(call);
}

/// A call with a shard for each rank.
inline Call& begin(Group& group, Verb verb, const Memory& whole, const Memory& shard, Counts counts, int root, const Reducer& reducer) {
  group.owner().check();
  const Shards cut = group.checks().shards(verb, whole, shard, counts, root, group.begins()[0]);
  const bool spreads = verb == Verb::scatter || verb == Verb::reduce_scatter;
  const Memory &in = spreads ? whole : shard, &out = spreads ? shard : whole;
  group.checks().one_type(verb, in, out);
  if (verb == Verb::reduce_scatter) check_reduction(group, verb, shard.type, reducer.reduction);
  group.check_memory(verb, shard);
  if ((verb != Verb::gather && verb != Verb::scatter) || group.rank() == root) group.check_memory(verb, whole);
  Call& call = group.fresh({.count = counts.empty() ? shard.count : cut.begin(group.size()),
                            .root = root,
                            .verb = verb,
                            .type = shard.type,
                            .reduction = reducer.reduction});
  call.in = in;
  call.out = out;
  call.cut = cut;
  if (!counts.empty()) std::swap(call.begins[0], group.begins()[0]);  // what `cut` has borrowed
  return group.start(call);
}

inline Call& begin(Group& group, const Memory& in, Counts sent, const Memory& out, Counts received) {
  group.owner().check();
  const auto [going, coming] = group.checks().all_to_all(in, sent, out, received, group.begins());
  group.checks().one_type(Verb::all_to_all, in, out);
  group.check_memory(Verb::all_to_all, in);
  group.check_memory(Verb::all_to_all, out);
  const bool equal = sent.empty() && received.empty();
  Call& call = group.fresh({.count = equal ? going.size(0) : 0, .verb = Verb::all_to_all, .type = in.type});
  call.in = in;
  call.out = out;
  call.cut = going;
  call.received = coming;
  if (!equal) std::swap(call.begins, group.begins());
  return group.start(call);
}

/// A message to one rank, from another one, or both.
inline Call& begin(Group& group, const Memory& out, int to, const Memory& in, int from, int tag) {
  group.owner().check();
  group.checks().message(out, to, in, from, tag);
  if (to != nobody) group.check_memory(Verb::send, out);
  if (from != nobody) group.check_memory(Verb::send, in);
  const Memory& either = to != nobody ? out : in;
  Call& call = group.fresh({.count = either.count, .tag = tag, .verb = Verb::send, .type = either.type});
  call.out = out;
  call.in = in;
  call.to = to;
  call.from = from;
  return group.start_message(call);
}

}  // namespace pdp::comm::cuda_thread
