#pragma once

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/mpi/group.hpp>
#include <pdp/comm/mpi/work.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// The calls of a rank of MPI: its own collectives, on a communicator that nobody else uses.
class MpiCalls {
 public:
  using Work = mpi::Work;

  /// `most`: elements that one function of MPI is given. What has more goes in several, or in messages of types of so many elements.
  MpiCalls(mpi::Session session, MPI_Comm comm, int most = INT_MAX);

  [[nodiscard]] int rank() const { return group_->rank(); }
  [[nodiscard]] int size() const { return group_->size(); }
  [[nodiscard]] Duration deadline() const { return world().deadline; }
  void deadline(Duration duration) { world().deadline = duration; }
  void progress();
  void abort(const std::string& reason);

  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {}) {
    return Work{begin(verb, in, out, root, reducer, false)};
  }
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {}) {
    return Work{begin(verb, whole, shard, counts, root, reducer, false)};
  }
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received) { return Work{begin(in, sent, out, received, false)}; }
  Work exchange(Memory out, int to, Memory in, int from, int tag);

  void complete_collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
    group_->finish(begin(verb, in, out, root, reducer, true));
  }
  void complete_collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
    group_->finish(begin(verb, whole, shard, counts, root, reducer, true));
  }
  void complete_all_to_all(Memory in, Counts sent, Memory out, Counts received) { group_->finish(begin(in, sent, out, received, true)); }

  Region allocate(std::size_t bytes);
  [[nodiscard]] MpiCalls split(int color, int key);

 private:
  explicit MpiCalls(std::unique_ptr<mpi::Group> group) : group_{std::move(group)} {}

  [[nodiscard]] mpi::World& world() const { return group_->world(); }

  mpi::Call& begin(Verb verb, Memory in, Memory out, int root, Reducer reducer, bool blocking);
  mpi::Call& begin(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer, bool blocking);
  mpi::Call& begin(Memory in, Counts sent, Memory out, Counts received, bool blocking);

  void all_gather(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal);
  void gather(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, int root);
  void scatter(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, int root);
  void reduce_scatter(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, MPI_Op operation);

  MPI_Op operation(Verb verb, DType type, const Reducer& reducer) const;
  /// Makes the call in as many pieces as MPI needs to count the elements: f(first byte, elements).
  template <class F>
  void in_pieces(const Memory& memory, F&& f) const {
    for (std::size_t at = 0; at < memory.count; at += most())
      f(memory.data + at * memory.element, as_int(std::min(most(), memory.count - at)));
  }
  /// In messages between two ranks each: `to` and `from` give what goes to a rank and what comes from it, none where that is empty.
  template <class To, class From>
  void in_messages(mpi::Call& call, const To& to, const From& from);
  /// What MPI reads of shards, for as long as the call is in flight.
  void tabulate(mpi::Call& call, const Shards& cut) const;

  [[nodiscard]] std::size_t most() const { return as_size(world().most); }
  [[nodiscard]] bool countable(const Shards& cut) const { return cut.begin(size()) <= most(); }
  static Memory part(const Memory& whole, const Shards& cut, int rank) {
    return {whole.data + cut.begin(rank) * whole.element, cut.size(rank), whole.element, whole.type};
  }
  /// A rank's own shard, where no message goes.
  static void copy(const Memory& to, const Memory& from) {
    if (to.data != from.data && from.count > 0) std::memmove(to.data, from.data, from.bytes());
  }

  std::unique_ptr<mpi::Group> group_;
};

inline MpiCalls::MpiCalls(mpi::Session session, MPI_Comm comm, int most) {
  int between_groups = 0;
  if (comm != MPI_COMM_NULL) MPI_Comm_test_inter(comm, &between_groups);
  if (comm == MPI_COMM_NULL || between_groups != 0)
    throw ConfigError{comm == MPI_COMM_NULL ? "comm::Mpi cannot adopt MPI_COMM_NULL: this process is no rank of it"
                                            : "comm::Mpi cannot adopt a communicator between two groups"};
  MPI_Comm own = MPI_COMM_NULL;
  if (const int code = MPI_Comm_dup(comm, &own); code != MPI_SUCCESS)
    throw CommunicationError{text("MPI_Comm_dup failed: ", mpi::describe_error(code))};
  group_ = std::make_unique<mpi::Group>(std::make_shared<mpi::World>(std::move(session), most), own);
  world().ranks = size();
}

/// Looks for a message that never comes, which lets MPI move all that is in flight.
inline void MpiCalls::progress() {
  world().check();
  int found = 0;
  MPI_Iprobe(rank(), group_->own_tag(), group_->comm(), &found, MPI_STATUS_IGNORE);
}

inline void MpiCalls::abort(const std::string& reason) {
  if (!group_) return;  // one that was moved from has no world to end
  if (world().ranks > 1) group_->end_job(reason);
  if (!world().failure) world().failure = std::make_exception_ptr(PeerLost{0, reason});
}

inline Region MpiCalls::allocate(std::size_t bytes) {
  world().check();
  if (bytes == 0) return {};
  void* memory = nullptr;
  std::size_t space = bytes + alignment;
  if (const int code = MPI_Alloc_mem(static_cast<MPI_Aint>(space), MPI_INFO_NULL, &memory); code != MPI_SUCCESS)
    throw CommunicationError{text("rank ", rank(), " has no ", bytes, " bytes: MPI_Alloc_mem failed: ", mpi::describe_error(code))};
  // The world, so that MPI does not end before the memory does.
  std::shared_ptr<void> owner{memory, [world = group_->shared_world()](void* own) {
                                if (mpi::is_running()) MPI_Free_mem(own);
                              }};
  void* const aligned = std::align(alignment, bytes, memory, space);
  std::memset(aligned, 0, bytes);
  return {static_cast<std::byte*>(aligned), bytes, std::move(owner)};
}

/// MPI's colours are 0 or more. So a group's colour there is its first rank.
inline MpiCalls MpiCalls::split(int color, int key) {
  std::vector<std::int32_t> colors(as_size(size()));
  colors[as_size(rank())] = color;
  const Memory all{reinterpret_cast<std::byte*>(colors.data()), colors.size(), sizeof(std::int32_t), DType::int32};
  complete_collective(Verb::all_gather, all, {all.data + as_size(rank()) * all.element, 1, all.element, all.type}, Counts{}, no_root, {});
  const auto first = as_int(std::ranges::find(colors, color) - colors.begin());
  mpi::Call& call = group_->fresh(true);
  call.envelope = {.verb = Verb::split};
  MPI_Comm comm = MPI_COMM_NULL;
  group_->check(call, "MPI_Comm_split", MPI_Comm_split(group_->comm(), first, key, &comm));
  world().recycle(call);
  return MpiCalls{std::make_unique<mpi::Group>(group_->shared_world(), comm)};
}

inline MPI_Op MpiCalls::operation(Verb verb, DType type, const Reducer& reducer) const {
  const MPI_Op found = world().operations.of(type, reducer.reduction);
  if (found == MPI_OP_NULL)
    throw ConfigError{text(name(verb), " on rank ", rank(), ": MPI cannot reduce ", name(type), " by ", name(reducer.reduction))};
  return found;
}

inline mpi::Call& MpiCalls::begin(Verb verb, Memory in, Memory out, int root, Reducer reducer, bool blocking) {
  const CallChecks checks = group_->checks();
  const bool rooted = verb == Verb::broadcast || verb == Verb::reduce, reduces = verb == Verb::reduce || verb == Verb::all_reduce;
  if (rooted) checks.root(verb, root);
  checks.one_type(verb, in, out);
  const MPI_Datatype type = mpi::type_of(in.type);
  const MPI_Op by = reduces ? operation(verb, in.type, reducer) : MPI_OP_NULL;
  const bool at_root = rank() == root;

  mpi::Call& call = group_->fresh(blocking);
  call.envelope = {.count = in.count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction};
  if (verb == Verb::all_reduce || (rooted && at_root)) copy(out, in);
  if (verb == Verb::barrier) {
    group_->carry_out(call, "MPI_Barrier", MPI_Barrier, MPI_Ibarrier);
  } else if (verb == Verb::broadcast) {
    in_pieces(
        out, [&](std::byte* values, int count) { group_->carry_out(call, "MPI_Bcast", MPI_Bcast, MPI_Ibcast, values, count, type, root); });
  } else if (verb == Verb::all_reduce) {
    in_pieces(out, [&](std::byte* values, int count) {
      group_->carry_out(call, "MPI_Allreduce", MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, values, count, type, by);
    });
  } else {
    // MPICH 4.0 reads from the address MPI_IN_PLACE where the root is not rank 0 and has 16 KiB; from a copy every library reads.
    const bool from_copy = at_root && root != 0 && in.count > 0;
    if (from_copy) copy(call.scratch_for(in), in);
    in_pieces(at_root ? out : in, [&](std::byte* values, int count) {
      const void* const from = from_copy ? call.scratch.data() + (values - out.data) : at_root ? MPI_IN_PLACE : values;
      group_->carry_out(call, "MPI_Reduce", MPI_Reduce, MPI_Ireduce, from, at_root ? values : nullptr, count, type, by, root);
    });
  }
  call.result = out;
  if (verb != Verb::reduce || at_root) call.divide = reducer.divide;
  return call;
}

inline mpi::Call& MpiCalls::begin(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer, bool blocking) {
  mpi::Call& call = group_->fresh(blocking);
  Shards cut;
  MPI_Op by = MPI_OP_NULL;
  try {
    cut = group_->checks().shards(verb, whole, shard, counts, root, call.begins[0]);
    group_->checks().one_type(verb, shard, whole);
    if (verb == Verb::reduce_scatter) by = operation(verb, shard.type, reducer);
  } catch (...) {
    world().recycle(call);
    throw;
  }
  const bool equal = counts.empty();
  call.envelope = {
      .count = equal ? shard.count : cut.begin(size()), .root = root, .verb = verb, .type = shard.type, .reduction = reducer.reduction};
  if (!equal) tabulate(call, cut);
  call.result = shard;
  call.divide = reducer.divide;
  if (verb == Verb::all_gather)
    all_gather(call, whole, shard, cut, equal);
  else if (verb == Verb::gather)
    gather(call, whole, shard, cut, equal, root);
  else if (verb == Verb::scatter)
    scatter(call, whole, shard, cut, equal, root);
  else
    reduce_scatter(call, whole, shard, cut, equal, by);
  return call;
}

/// Always in place: MPI wants all ranks to do it alike, and a rank's own shard must get there anyway.
inline void MpiCalls::all_gather(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal) {
  const MPI_Datatype type = mpi::type_of(shard.type);
  copy(part(whole, cut, rank()), shard);
  if (!countable(cut))
    in_messages(
        call, [&](int) { return shard; }, [&](int peer) { return part(whole, cut, peer); });
  else if (equal)
    group_->carry_out(call, "MPI_Allgather", MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, type, whole.data, as_int(shard.count), type);
  else
    group_->carry_out(call, "MPI_Allgatherv", MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, type, whole.data, call.tables[0].data(),
                      call.tables[1].data(), type);
}

inline void MpiCalls::gather(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, int root) {
  const MPI_Datatype type = mpi::type_of(shard.type);
  const auto count = as_int(std::min(shard.count, most()));
  const bool at_root = rank() == root;
  if (at_root) copy(part(whole, cut, root), shard);
  const void* const from = at_root ? MPI_IN_PLACE : shard.data;
  if (!countable(cut))
    in_messages(
        call, [&](int peer) { return peer == root ? shard : Memory{}; },
        [&](int peer) { return at_root ? part(whole, cut, peer) : Memory{}; });
  else if (equal)
    group_->carry_out(call, "MPI_Gather", MPI_Gather, MPI_Igather, from, count, type, whole.data, count, type, root);
  else
    group_->carry_out(call, "MPI_Gatherv", MPI_Gatherv, MPI_Igatherv, from, count, type, whole.data, call.tables[0].data(),
                      call.tables[1].data(), type, root);
}

inline void MpiCalls::scatter(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, int root) {
  const MPI_Datatype type = mpi::type_of(shard.type);
  const auto count = as_int(std::min(shard.count, most()));
  const bool at_root = rank() == root;
  if (at_root) copy(shard, part(whole, cut, root));
  void* const into = at_root ? MPI_IN_PLACE : shard.data;
  if (!countable(cut))
    in_messages(
        call, [&](int peer) { return at_root ? part(whole, cut, peer) : Memory{}; },
        [&](int peer) { return peer == root ? shard : Memory{}; });
  else if (equal)
    group_->carry_out(call, "MPI_Scatter", MPI_Scatter, MPI_Iscatter, whole.data, count, type, into, count, type, root);
  else
    group_->carry_out(call, "MPI_Scatterv", MPI_Scatterv, MPI_Iscatterv, whole.data, call.tables[0].data(), call.tables[1].data(), type,
                      into, count, type, root);
}

/// MPI may not write into what it reads, nor leaves the rest of it as it was when it is told to: where the shard lies within the whole, the
/// result is copied there in the end.
inline void MpiCalls::reduce_scatter(mpi::Call& call, Memory whole, Memory shard, const Shards& cut, bool equal, MPI_Op operation) {
  const MPI_Datatype type = mpi::type_of(shard.type);
  call.in_scratch = shard.count > 0 && shard.data < whole.data + whole.bytes() && whole.data < shard.data + shard.bytes();
  Memory result = shard;
  if (call.in_scratch) result = call.scratch_for(shard);
  if (!countable(cut)) {
    for (int root = 0; root < size(); ++root) {
      const std::byte* const first = whole.data + cut.begin(root) * whole.element;
      in_pieces(part(whole, cut, root), [&](const std::byte* values, int count) {
        std::byte* const into = rank() == root ? result.data + (values - first) : nullptr;
        group_->carry_out(call, "MPI_Reduce", MPI_Reduce, MPI_Ireduce, values, into, count, type, operation, root);
      });
    }
  } else if (equal) {
    group_->carry_out(call, "MPI_Reduce_scatter_block", MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, whole.data, result.data,
                      as_int(shard.count), type, operation);
  } else {
    group_->carry_out(call, "MPI_Reduce_scatter", MPI_Reduce_scatter, MPI_Ireduce_scatter, whole.data, result.data, call.tables[0].data(),
                      type, operation);
  }
}

/// With counts always in messages: these are not the same on all ranks, so no rank knows whether MPI can count those of the others. The
/// messages also show whether two ranks agree.
inline mpi::Call& MpiCalls::begin(Memory in, Counts sent, Memory out, Counts received, bool blocking) {
  mpi::Call& call = group_->fresh(blocking);
  Shards going, coming;
  try {
    std::tie(going, coming) = group_->checks().all_to_all(in, sent, out, received, call.begins);
    group_->checks().one_type(Verb::all_to_all, in, out);
  } catch (...) {
    world().recycle(call);
    throw;
  }
  const bool equal = sent.empty() && received.empty();
  call.envelope = {.count = equal ? going.size(0) : 0, .verb = Verb::all_to_all, .type = in.type};
  if (equal && countable(going)) {
    const auto count = as_int(going.size(0));
    const MPI_Datatype type = mpi::type_of(in.type);
    group_->carry_out(call, "MPI_Alltoall", MPI_Alltoall, MPI_Ialltoall, in.data, count, type, out.data, count, type);
  } else {
    copy(part(out, coming, rank()), part(in, going, rank()));
    in_messages(
        call, [&](int peer) { return part(in, going, peer); }, [&](int peer) { return part(out, coming, peer); });
  }
  return call;
}

inline mpi::Work MpiCalls::exchange(Memory out, int to, Memory in, int from, int tag) {
  group_->checks().message(out, to, in, from, tag);
  if (tag >= group_->own_tag())
    throw ConfigError{
        text("rank ", rank(), " cannot give a message tag ", tag, ": those of this MPI library are 0 to ", group_->own_tag() - 1)};
  mpi::Call& call = group_->fresh(false);
  const Memory& either = to != nobody ? out : in;
  call.envelope = {.count = either.count, .tag = tag, .verb = Verb::send, .type = either.type};
  call.peer = from != nobody ? from : to;
  if (from != nobody) group_->receive(call, in, from, tag);
  if (to != nobody) group_->send(call, out, to, tag);
  return Work{call};
}

template <class To, class From>
void MpiCalls::in_messages(mpi::Call& call, const To& to, const From& from) {
  const int ranks = size();
  for (int step = 1; step < ranks; ++step) {
    const int left = (rank() + ranks - step) % ranks;
    if (const Memory memory = from(left); memory.count > 0) group_->receive(call, memory, left, group_->own_tag());
  }
  for (int step = 1; step < ranks; ++step) {
    const int right = (rank() + step) % ranks;
    if (const Memory memory = to(right); memory.count > 0) group_->send(call, memory, right, group_->own_tag());
  }
}

inline void MpiCalls::tabulate(mpi::Call& call, const Shards& cut) const {
  if (!countable(cut)) return;
  for (auto& table : call.tables) table.resize(as_size(size()));
  for (int each = 0; each < size(); ++each) {
    call.tables[0][as_size(each)] = as_int(cut.size(each));
    call.tables[1][as_size(each)] = as_int(cut.begin(each));
  }
}

static_assert(BlockingCalls<MpiCalls> && AllocatesRegions<MpiCalls>);

}  // namespace pdp::comm
