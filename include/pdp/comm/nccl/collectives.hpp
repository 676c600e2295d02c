#pragma once

#include <array>
#include <cstddef>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

/// Makes the NCCL calls of one request: one call, or several as one group call if NCCL has no function for the verb.
class Maker {
 public:
  /// `reduction` is used by reductions only.
  Maker(Group& group, const Call& call, const Request& request, const CheckedRequest& checked, ncclRedOp_t reduction)
      : group_{group}, call_{call}, request_{request}, cut_{checked.shards}, coming_{checked.received}, reduction_{reduction} {}
  Maker(Maker&&) = delete;

  void make() {
    const ErasedSpan &in = request_.in, &out = request_.out;
    switch (request_.verb) {
      case Verb::barrier:
        return barrier();
      case Verb::broadcast:
        return broadcast(in, out, request_.root);
      case Verb::reduce:
        return reduce(in, out.data, request_.root);
      case Verb::all_reduce:
        return all_reduce();
      case Verb::reduce_scatter:
        return request_.counts.empty() ? reduce_scatter() : for_each_shard([&](int rank) { reduce(part(in, rank), out.data, rank); });
      case Verb::all_gather:
        return request_.counts.empty() ? all_gather() : for_each_shard([&](int rank) {
          const ErasedSpan theirs = part(out, rank);
          broadcast(rank == group_.rank() ? in : theirs, theirs, rank);
        });
      case Verb::gather:
        if (group_.rank() != request_.root) return send(in, request_.root);
        copy(part(out, group_.rank()), in);
        return for_each_shard([&](int rank) {
          if (rank != group_.rank()) receive(part(out, rank), rank);
        });
      case Verb::scatter:
        if (group_.rank() != request_.root) return receive(out, request_.root);
        copy(out, part(in, group_.rank()));
        return for_each_shard([&](int rank) {
          if (rank != group_.rank()) send(part(in, rank), rank);
        });
      case Verb::all_to_all:
        return all_to_all();
      case Verb::send:
        return exchange();
      case Verb::split:
        return;
    }
  }

 private:
  void barrier() {
    std::byte* const byte = group_.world().staging().barrier();
    check("ncclAllReduce", ncclAllReduce(byte, byte, 1, ncclUint8, ncclSum, group_.comm(), group_.stream()));
  }
  void broadcast(const ErasedSpan& in, const ErasedSpan& out, int root) {
    if (out.count == 0) return;
    check("ncclBroadcast", ncclBroadcast(in.data, out.data, out.count, type_of(out.type), root, group_.comm(), group_.stream()));
  }
  void reduce(const ErasedSpan& in, std::byte* out, int root) {
    if (in.count == 0) return;
    std::byte* const into = group_.rank() == root ? out : nullptr;
    check("ncclReduce", ncclReduce(in.data, into, in.count, type_of(in.type), reduction_, root, group_.comm(), group_.stream()));
  }
  void all_reduce() {
    const ErasedSpan &in = request_.in, &out = request_.out;
    if (in.count == 0) return;
    check("ncclAllReduce", ncclAllReduce(in.data, out.data, in.count, type_of(in.type), reduction_, group_.comm(), group_.stream()));
  }
  void reduce_scatter() {
    const ErasedSpan &whole = request_.in, &shard = request_.out;
    if (shard.count == 0) return;
    check("ncclReduceScatter",
          ncclReduceScatter(whole.data, shard.data, shard.count, type_of(shard.type), reduction_, group_.comm(), group_.stream()));
  }
  void all_gather() {
    const ErasedSpan &shard = request_.in, &whole = request_.out;
    if (shard.count == 0) return;
    check("ncclAllGather", ncclAllGather(shard.data, whole.data, shard.count, type_of(shard.type), group_.comm(), group_.stream()));
  }
  void all_to_all() {
    const int rank = group_.rank(), size = group_.size();
    const auto coming = [this](int from) { return request_.out.part(coming_.begin(from), coming_.size(from)); };
    copy(coming(rank), part(request_.in, rank));
    together([&] {
      for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size, from = (rank + size - step) % size;
        send(part(request_.in, to), to);
        receive(coming(from), from);
      }
    });
  }
  /// Sends a message, receives one, or both.
  void exchange() {
    if (request_.from == no_peer) return send(request_.in, request_.to);
    if (request_.to == no_peer) return receive(request_.out, request_.from);
    together([&] {
      send(request_.in, request_.to);
      receive(request_.out, request_.from);
    });
  }

  void send(const ErasedSpan& memory, int peer) {
    if (memory.count == 0) return;
    check("ncclSend", ncclSend(memory.data, memory.count, type_of(memory.type), peer, group_.comm(), group_.stream()));
  }
  void receive(const ErasedSpan& memory, int peer) {
    if (memory.count == 0) return;
    check("ncclRecv", ncclRecv(memory.data, memory.count, type_of(memory.type), peer, group_.comm(), group_.stream()));
  }
  /// Copies this rank's own shard, which no message carries.
  void copy(const ErasedSpan& to, const ErasedSpan& from) {
    if (to.data == from.data || from.count == 0) return;
    group_.check(call_, "cudaMemcpyAsync", cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDefault, group_.stream()));
  }
  /// Makes the calls of f() as one group call.
  template <class F>
  void together(const F& f) {
    group_.world().open();
    f();
    check("ncclGroupEnd", group_.world().close());
  }
  /// Makes the calls of f(rank) for all ranks as one group call.
  template <class F>
  void for_each_shard(const F& f) {
    together([&] {
      for (int rank = 0; rank < group_.size(); ++rank) f(rank);
    });
  }

  [[nodiscard]] ErasedSpan part(const ErasedSpan& whole, int rank) const { return whole.part(cut_.begin(rank), cut_.size(rank)); }
  void check(const char* function, ncclResult_t result) { group_.check(call_, function, result); }

  Group& group_;
  const Call& call_;
  const Request& request_;
  Shards cut_, coming_;
  ncclRedOp_t reduction_;
};

/// Returns NCCL's operation for a request; ncclNumOps if the request does not reduce. Throws ConfigError if NCCL has no such operation.
inline ncclRedOp_t operation(const Group& group, const Request& request) {
  if (!reduces(request.verb)) return ncclNumOps;
  // The average of one rank's values is these values, but NCCL before 2.29.7 does not write all of them (NVIDIA/nccl issue 1950).
  if (group.size() == 1 && request.reducer.reduction == Reduction::average) return ncclSum;
  const ncclRedOp_t found = operation_of(request.reducer.reduction);
  if (found == ncclNumOps)
    throw ConfigError{text(name(request.verb), " on rank ", group.rank(), ": NCCL has no ", name(request.reducer.reduction),
                           "; for flags, store each in a value of its own and reduce by min or max")};
  return found;
}

/// Checks a request and starts its call. Throws ConfigError or ShapeError if the request is invalid.
inline Call& begin(Group& group, const Request& request) {
  group.world().check();
  std::array<CallChecks::Begins, 2> begins;
  const CheckedRequest checked = CallChecks{group.rank(), group.size()}.check(request, begins);
  const ncclRedOp_t reduction = operation(group, request);
  comm::check_memory(group, request);
  const int peer = request.from != no_peer ? request.from : request.to != no_peer ? request.to : -1;
  return group.call(checked.envelope, peer, [&](const Call& call) { Maker{group, call, request, checked, reduction}.make(); });
}

}  // namespace pdp::comm::nccl
