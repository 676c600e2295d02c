#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/mpi/group.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::mpi {

/// Makes the MPI calls of one collective: one call, or several if there are more elements than MPI can count.
class Maker {
 public:
  /// `reduction` is used by reductions only.
  Maker(Group& group, Call& call, const Request& request, const CheckedRequest& checked, MPI_Op reduction)
      : group_{group},
        call_{call},
        request_{request},
        cut_{checked.shards},
        coming_{checked.received},
        type_{type_of(request.in.type)},
        reduction_{reduction},
        at_root_{group.rank() == request.root} {}
  Maker(Maker&&) = delete;

  void make() {
    if (has_shards(request_.verb) && !request_.counts.empty()) tabulate();
    switch (request_.verb) {
      case Verb::barrier:
        return group_.carry_out(call_, "MPI_Barrier", MPI_Barrier, MPI_Ibarrier);
      case Verb::broadcast:
        return broadcast();
      case Verb::reduce:
        return reduce();
      case Verb::all_reduce:
        return all_reduce();
      case Verb::reduce_scatter:
        return reduce_scatter();
      case Verb::all_gather:
        return all_gather();
      case Verb::gather:
        return gather();
      case Verb::scatter:
        return scatter();
      case Verb::all_to_all:
        return all_to_all();
      case Verb::send:
      case Verb::split:
        return;
    }
  }

 private:
  void broadcast() {
    if (at_root_) copy(request_.out, request_.in);
    in_pieces(request_.out, [&](std::byte* values, int count) {
      group_.carry_out(call_, "MPI_Bcast", MPI_Bcast, MPI_Ibcast, values, count, type_, request_.root);
    });
  }

  void reduce() {
    const ErasedSpan &in = request_.in, &out = request_.out;
    if (at_root_) copy(out, in);
    // MPICH 4.0 reads from the address MPI_IN_PLACE if the root is not rank 0 and has 16 KiB of values. So such a root reduces from a copy,
    // whatever the library.
    const bool from_copy = at_root_ && request_.root != 0 && in.count > 0;
    if (from_copy) copy(call_.scratch_for(in), in);
    in_pieces(at_root_ ? out : in, [&](std::byte* values, int count) {
      const void* const from = from_copy ? call_.scratch.data() + (values - out.data) : at_root_ ? MPI_IN_PLACE : values;
      group_.carry_out(call_, "MPI_Reduce", MPI_Reduce, MPI_Ireduce, from, at_root_ ? values : nullptr, count, type_, reduction_,
                       request_.root);
    });
  }

  void all_reduce() {
    copy(request_.out, request_.in);
    in_pieces(request_.out, [&](std::byte* values, int count) {
      group_.carry_out(call_, "MPI_Allreduce", MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, values, count, type_, reduction_);
    });
  }

  /// Gathers in place: MPI requires the same choice on all ranks, and this rank's shard must be copied into the whole anyway.
  void all_gather() {
    const ErasedSpan &whole = request_.out, &shard = request_.in;
    copy(part(whole, cut_, group_.rank()), shard);
    if (!is_countable())
      in_messages([&](int) { return shard; }, [&](int peer) { return part(whole, cut_, peer); });
    else if (is_equal())
      group_.carry_out(call_, "MPI_Allgather", MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, type_, whole.data, as_int(shard.count),
                       type_);
    else
      group_.carry_out(call_, "MPI_Allgatherv", MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, type_, whole.data, call_.tables[0].data(),
                       call_.tables[1].data(), type_);
  }

  void gather() {
    const ErasedSpan &whole = request_.out, &shard = request_.in;
    const int root = request_.root;
    const auto count = as_int(std::min(shard.count, most()));
    if (at_root_) copy(part(whole, cut_, root), shard);
    const void* const from = at_root_ ? MPI_IN_PLACE : shard.data;
    if (!is_countable())
      in_messages([&](int peer) { return peer == root ? shard : ErasedSpan{}; },
                  [&](int peer) { return at_root_ ? part(whole, cut_, peer) : ErasedSpan{}; });
    else if (is_equal())
      group_.carry_out(call_, "MPI_Gather", MPI_Gather, MPI_Igather, from, count, type_, whole.data, count, type_, root);
    else
      group_.carry_out(call_, "MPI_Gatherv", MPI_Gatherv, MPI_Igatherv, from, count, type_, whole.data, call_.tables[0].data(),
                       call_.tables[1].data(), type_, root);
  }

  void scatter() {
    const ErasedSpan &whole = request_.in, &shard = request_.out;
    const int root = request_.root;
    const auto count = as_int(std::min(shard.count, most()));
    if (at_root_) copy(shard, part(whole, cut_, root));
    void* const into = at_root_ ? MPI_IN_PLACE : shard.data;
    if (!is_countable())
      in_messages([&](int peer) { return at_root_ ? part(whole, cut_, peer) : ErasedSpan{}; },
                  [&](int peer) { return peer == root ? shard : ErasedSpan{}; });
    else if (is_equal())
      group_.carry_out(call_, "MPI_Scatter", MPI_Scatter, MPI_Iscatter, whole.data, count, type_, into, count, type_, root);
    else
      group_.carry_out(call_, "MPI_Scatterv", MPI_Scatterv, MPI_Iscatterv, whole.data, call_.tables[0].data(), call_.tables[1].data(),
                       type_, into, count, type_, root);
  }

  /// MPI's output may not overlap its input, and its in-place variant may change the rest of the whole. So if the shard overlaps the whole,
  /// the result goes to scratch memory and is copied at the end.
  void reduce_scatter() {
    const ErasedSpan &whole = request_.in, &shard = request_.out;
    call_.in_scratch = shard.count > 0 && shard.data < whole.data + whole.bytes() && whole.data < shard.data + shard.bytes();
    const ErasedSpan result = call_.in_scratch ? call_.scratch_for(shard) : shard;
    if (!is_countable()) {
      for (int root = 0; root < group_.size(); ++root) {
        const ErasedSpan theirs = part(whole, cut_, root);
        in_pieces(theirs, [&](const std::byte* values, int count) {
          std::byte* const into = group_.rank() == root ? result.data + (values - theirs.data) : nullptr;
          group_.carry_out(call_, "MPI_Reduce", MPI_Reduce, MPI_Ireduce, values, into, count, type_, reduction_, root);
        });
      }
    } else if (is_equal()) {
      group_.carry_out(call_, "MPI_Reduce_scatter_block", MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, whole.data, result.data,
                       as_int(shard.count), type_, reduction_);
    } else {
      group_.carry_out(call_, "MPI_Reduce_scatter", MPI_Reduce_scatter, MPI_Ireduce_scatter, whole.data, result.data,
                       call_.tables[0].data(), type_, reduction_);
    }
  }

  /// With counts, always uses messages. A rank knows only its own counts, so it cannot tell whether MPI can count the elements of the
  /// others. Messages also show whether two ranks agree.
  void all_to_all() {
    const ErasedSpan &in = request_.in, &out = request_.out;
    if (request_.is_even() && is_countable()) {
      const auto count = as_int(cut_.size(0));
      group_.carry_out(call_, "MPI_Alltoall", MPI_Alltoall, MPI_Ialltoall, in.data, count, type_, out.data, count, type_);
    } else {
      copy(part(out, coming_, group_.rank()), part(in, cut_, group_.rank()));
      in_messages([&](int peer) { return part(in, cut_, peer); }, [&](int peer) { return part(out, coming_, peer); });
    }
  }

  /// Calls f(first byte, elements) for each piece that is small enough for MPI to count.
  template <class F>
  void in_pieces(const ErasedSpan& memory, const F& f) const {
    for (std::size_t at = 0; at < memory.count; at += most())
      f(memory.data + at * memory.element, as_int(std::min(most(), memory.count - at)));
  }
  /// Exchanges messages with each rank. `to` and `from` return the memory to send to a rank and to receive from it; empty memory means no
  /// message.
  template <class To, class From>
  void in_messages(const To& to, const From& from) {
    const int ranks = group_.size(), rank = group_.rank();
    for (int step = 1; step < ranks; ++step) {
      const int left = (rank + ranks - step) % ranks;
      if (const ErasedSpan memory = from(left); memory.count > 0) group_.receive(call_, memory, left, group_.own_tag());
    }
    for (int step = 1; step < ranks; ++step) {
      const int right = (rank + step) % ranks;
      if (const ErasedSpan memory = to(right); memory.count > 0) group_.send(call_, memory, right, group_.own_tag());
    }
  }
  /// Fills in the tables of shards, which MPI reads while the call is in flight.
  void tabulate() {
    if (!is_countable()) return;
    for (auto& table : call_.tables) table.resize(as_size(group_.size()));
    for (int each = 0; each < group_.size(); ++each) {
      call_.tables[0][as_size(each)] = as_int(cut_.size(each));
      call_.tables[1][as_size(each)] = as_int(cut_.begin(each));
    }
  }

  [[nodiscard]] std::size_t most() const { return as_size(group_.world().most); }
  [[nodiscard]] bool is_equal() const { return request_.counts.empty(); }
  [[nodiscard]] bool is_countable() const { return cut_.begin(group_.size()) <= most(); }
  static ErasedSpan part(const ErasedSpan& whole, const Shards& cut, int rank) { return whole.part(cut.begin(rank), cut.size(rank)); }
  /// Copies values that no message carries, unless they are in place.
  static void copy(const ErasedSpan& to, const ErasedSpan& from) {
    if (to.data != from.data && from.count > 0) std::memmove(to.data, from.data, from.bytes());
  }

  Group& group_;
  Call& call_;
  const Request& request_;
  Shards cut_, coming_;
  MPI_Datatype type_;
  MPI_Op reduction_;
  bool at_root_;
};

}  // namespace pdp::comm::mpi
