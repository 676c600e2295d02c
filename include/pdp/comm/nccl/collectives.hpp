#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/shards.hpp>

namespace pdp::comm::nccl {

/// NCCL's calls for one of pdp's. What NCCL has no call for is several of them, made together.
class Maker {
 public:
  Maker(Group& group, const Call& call) : group_{group}, call_{call} {}
  Maker(Maker&&) = delete;

  void barrier() {
    std::byte* const byte = group_.world().staging().barrier();
    check("ncclAllReduce", ncclAllReduce(byte, byte, 1, ncclUint8, ncclSum, group_.comm(), group_.stream()));
  }
  void broadcast(const Memory& in, const Memory& out, int root) {
    if (out.count == 0) return;
    check("ncclBroadcast", ncclBroadcast(in.data, out.data, out.count, type_of(out.type), root, group_.comm(), group_.stream()));
  }
  void reduce(const Memory& in, std::byte* out, ncclRedOp_t by, int root) {
    if (in.count == 0) return;
    std::byte* const into = group_.rank() == root ? out : nullptr;
    check("ncclReduce", ncclReduce(in.data, into, in.count, type_of(in.type), by, root, group_.comm(), group_.stream()));
  }
  void all_reduce(const Memory& in, const Memory& out, ncclRedOp_t by) {
    if (in.count == 0) return;
    check("ncclAllReduce", ncclAllReduce(in.data, out.data, in.count, type_of(in.type), by, group_.comm(), group_.stream()));
  }
  void reduce_scatter(const Memory& whole, const Memory& shard, ncclRedOp_t by) {
    if (shard.count == 0) return;
    check("ncclReduceScatter",
          ncclReduceScatter(whole.data, shard.data, shard.count, type_of(shard.type), by, group_.comm(), group_.stream()));
  }
  void all_gather(const Memory& shard, const Memory& whole) {
    if (shard.count == 0) return;
    check("ncclAllGather", ncclAllGather(shard.data, whole.data, shard.count, type_of(shard.type), group_.comm(), group_.stream()));
  }
  void send(const Memory& memory, int peer) {
    if (memory.count == 0) return;
    check("ncclSend", ncclSend(memory.data, memory.count, type_of(memory.type), peer, group_.comm(), group_.stream()));
  }
  void receive(const Memory& memory, int peer) {
    if (memory.count == 0) return;
    check("ncclRecv", ncclRecv(memory.data, memory.count, type_of(memory.type), peer, group_.comm(), group_.stream()));
  }
  /// A rank's own shard, where no message goes.
  void copy(const Memory& to, const Memory& from) {
    if (to.data == from.data || from.count == 0) return;
    group_.check(call_, "cudaMemcpyAsync", cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDefault, group_.stream()));
  }
  /// f() makes several calls.
  template <class F>
  void together(F&& f) {
    group_.world().open();
    f();
    check("ncclGroupEnd", group_.world().close());
  }

 private:
  void check(const char* function, ncclResult_t result) { group_.check(call_, function, result); }

  Group& group_;
  const Call& call_;
};

inline Memory part(const Memory& whole, const Shards& cut, int rank) {
  return {whole.data + cut.begin(rank) * whole.element, cut.size(rank), whole.element, whole.type};
}

inline ncclRedOp_t operation(const Group& group, Verb verb, const Reducer& reducer) {
  const ncclRedOp_t found = operation_of(reducer.reduction);
  if (found == ncclNumOps)
    throw ConfigError{text(name(verb), " on rank ", group.rank(), ": NCCL has no ", name(reducer.reduction),
                           "; where a bit says yes or no, a number of its own does, by min and max")};
  return found;
}

/// A call in which every rank brings as much.
inline Call& begin(Group& group, Verb verb, const Memory& in, const Memory& out, int root, const Reducer& reducer) {
  group.world().check();
  const bool rooted = verb == Verb::broadcast || verb == Verb::reduce, reduces = verb == Verb::reduce || verb == Verb::all_reduce;
  if (rooted) group.checks().root(verb, root);
  group.checks().one_type(verb, in, out);
  const ncclRedOp_t by = reduces ? operation(group, verb, reducer) : ncclNumOps;
  group.check_memory(verb, in);
  if (out.data != in.data) group.check_memory(verb, out);
  const Envelope envelope{.count = in.count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction};
  return group.collective(envelope, [&](const Call& call) {
    Maker make{group, call};
    if (verb == Verb::barrier)
      make.barrier();
    else if (verb == Verb::broadcast)
      make.broadcast(in, out, root);
    else if (verb == Verb::reduce)
      make.reduce(in, out.data, by, root);
    else
      make.all_reduce(in, out, by);
  });
}

/// A call with a shard for each rank.
inline Call& begin(Group& group, Verb verb, const Memory& whole, const Memory& shard, Counts counts, int root, const Reducer& reducer) {
  group.world().check();
  CallChecks::Begins begins;
  const Shards cut = group.checks().shards(verb, whole, shard, counts, root, begins);
  const bool spreads = verb == Verb::scatter || verb == Verb::reduce_scatter, equal = counts.empty();
  group.checks().one_type(verb, spreads ? whole : shard, spreads ? shard : whole);
  const ncclRedOp_t by = verb == Verb::reduce_scatter ? operation(group, verb, reducer) : ncclNumOps;
  const int rank = group.rank(), size = group.size();
  const bool rooted = verb == Verb::gather || verb == Verb::scatter, has_whole = !rooted || rank == root;
  group.check_memory(verb, shard);
  if (has_whole) group.check_memory(verb, whole);
  const Envelope envelope{
      .count = equal ? shard.count : cut.begin(size), .root = root, .verb = verb, .type = shard.type, .reduction = reducer.reduction};
  return group.collective(envelope, [&](const Call& call) {
    Maker make{group, call};
    if (verb == Verb::reduce_scatter && equal) return make.reduce_scatter(whole, shard, by);
    if (verb == Verb::all_gather && equal) return make.all_gather(shard, whole);
    if (rooted && rank == root) {
      const Memory own = part(whole, cut, rank);
      verb == Verb::gather ? make.copy(own, shard) : make.copy(shard, own);
    }
    make.together([&] {
      if (verb == Verb::gather && rank != root) return make.send(shard, root);
      if (verb == Verb::scatter && rank != root) return make.receive(shard, root);
      for (int each = 0; each < size; ++each) {
        const Memory theirs = part(whole, cut, each);
        if (verb == Verb::reduce_scatter)
          make.reduce(theirs, shard.data, by, each);
        else if (verb == Verb::all_gather)
          make.broadcast(each == rank ? shard : theirs, theirs, each);
        else if (each != rank)
          verb == Verb::gather ? make.receive(theirs, each) : make.send(theirs, each);
      }
    });
  });
}

inline Call& begin(Group& group, const Memory& in, Counts sent, const Memory& out, Counts received) {
  group.world().check();
  std::array<CallChecks::Begins, 2> begins;
  const auto [going, coming] = group.checks().all_to_all(in, sent, out, received, begins);
  group.checks().one_type(Verb::all_to_all, in, out);
  group.check_memory(Verb::all_to_all, in);
  group.check_memory(Verb::all_to_all, out);
  const int rank = group.rank(), size = group.size();
  const bool equal = sent.empty() && received.empty();
  const Envelope envelope{.count = equal ? going.size(0) : 0, .verb = Verb::all_to_all, .type = in.type};
  return group.collective(envelope, [&, &going = going, &coming = coming](const Call& call) {
    Maker make{group, call};
    make.copy(part(out, coming, rank), part(in, going, rank));
    make.together([&] {
      for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size, from = (rank + size - step) % size;
        make.send(part(in, going, to), to);
        make.receive(part(out, coming, from), from);
      }
    });
  });
}

/// A message to one rank, from another one, or both.
inline Call& begin(Group& group, const Memory& out, int to, const Memory& in, int from, int tag) {
  group.world().check();
  group.checks().message(out, to, in, from, tag);
  group.check_memory(Verb::send, out);
  group.check_memory(Verb::send, in);
  const Memory& either = to != nobody ? out : in;
  const Envelope envelope{.count = either.count, .tag = tag, .verb = Verb::send, .type = either.type};
  return group.call(envelope, from != nobody ? from : to, [&](const Call& call) {
    Maker make{group, call};
    if (from == nobody) return make.send(out, to);
    if (to == nobody) return make.receive(in, from);
    make.together([&] {
      make.send(out, to);
      make.receive(in, from);
    });
  });
}

}  // namespace pdp::comm::nccl
