#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/gloo/links.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

#if __has_include(<gloo/context.h>)
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#endif

namespace pdp::comm::gloo {

/// A checked request for a collective.
struct Collective {
  Envelope envelope;
  std::uint64_t fingerprint = 0;  // hash of everything that all ranks must agree on; calls with different hashes never match
  ErasedSpan in, out;
  Shards shards, received;  // shards of the whole; for all_to_all: those sent, and those received
  Reducer reducer;
};

/// Runs the collectives of one group, one at a time. Uses Gloo's collective if there is an equivalent one, else messages between Gloo's
/// buffers.
class Collectives {
 public:
  explicit Collectives(std::shared_ptr<Context> context) : context_{std::move(context)}, rank_{context_->rank}, size_{context_->size} {}

  void run(const Collective& call) {
    if (call.envelope.verb == Verb::barrier) return barrier(call);
    const bool rooted = call.envelope.verb == Verb::gather || call.envelope.verb == Verb::scatter;
    const bool nothing = call.envelope.verb == Verb::all_to_all ? call.in.count + call.out.count == 0 : call.envelope.count == 0;
    if (nothing || (rooted && call.shards.begin(size_) == 0)) return;
    switch (call.envelope.verb) {
      case Verb::broadcast:
        return broadcast(call);
      case Verb::reduce:
        return reduce(call);
      case Verb::all_reduce:
        return all_reduce(call);
      case Verb::reduce_scatter:
        return reduce_scatter(call);
      case Verb::all_gather:
        return all_gather(call);
      case Verb::gather:
        return gather(call);
      case Verb::scatter:
        return scatter(call);
      case Verb::all_to_all:
        return all_to_all(call);
      case Verb::send:
      case Verb::barrier:
      case Verb::split:
        break;
    }
  }

 private:
  using GlooBuffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  template <class Options>
  Options options(const Collective& call) const {
    Options made{context_};
    made.setTag(static_cast<std::uint32_t>(call.fingerprint >> 32));
    made.setTimeout(no_timeout);
    return made;
  }
  /// Calls f with the memory as a pointer to unsigned integers of the size of an element. Gloo derives the element size from the type.
  template <class F>
  static void as_elements(const ErasedSpan& memory, F&& f) {
    switch (memory.element) {
      case 1:
        return f(reinterpret_cast<std::uint8_t*>(memory.data));
      case 2:
        return f(reinterpret_cast<std::uint16_t*>(memory.data));
      case 4:
        return f(reinterpret_cast<std::uint32_t*>(memory.data));
      default:
        return f(reinterpret_cast<std::uint64_t*>(memory.data));
    }
  }
  /// Returns a reduction in the form that Gloo calls: combines `left` and `right` into `into`, which may be the memory of either.
  static auto function(const Reducer& reducer, std::size_t element) {
    return [combine = reducer.combine, element](void* into, const void* left, const void* right, std::size_t count) {
      if (into == right) std::swap(left, right);
      if (into != left) std::memcpy(into, left, count * element);
      combine(static_cast<std::byte*>(into), static_cast<const std::byte*>(right), count * element);
    };
  }
  void divide(const Collective& call, const ErasedSpan& sums) const {
    if (call.reducer.divide != nullptr) call.reducer.divide(sums.data, sums.bytes(), size_);
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, bytes);
  }

  void barrier(const Collective& call) const {
    auto made = options<::gloo::BarrierOptions>(call);
    ::gloo::barrier(made);
  }

  void broadcast(const Collective& call) const {
    if (rank_ == call.envelope.root) copy(call.out.data, call.in.data, call.in.bytes());
    auto made = options<::gloo::BroadcastOptions>(call);
    made.setOutput(call.out.data, call.out.bytes());
    made.setRoot(call.envelope.root);
    ::gloo::broadcast(made);
  }

  void all_reduce(const Collective& call) const {
    copy(call.out.data, call.in.data, call.in.bytes());
    auto made = options<::gloo::AllreduceOptions>(call);
    as_elements(call.out, [&](auto* values) { made.setOutput(values, call.out.count); });
    made.setReduceFunction(function(call.reducer, call.out.element));
    ::gloo::allreduce(made);
    divide(call, call.out);
  }

  /// Ranks other than the root reduce into scratch memory, because their values must not change.
  void reduce(const Collective& call) {
    const bool root = rank_ == call.envelope.root;
    ErasedSpan sums = call.out;
    if (!root) sums.data = scratch(call.in.bytes());
    auto made = options<::gloo::ReduceOptions>(call);
    if (sums.data != call.in.data) as_elements(call.in, [&](auto* values) { made.setInput(values, call.in.count); });
    as_elements(sums, [&](auto* values) { made.setOutput(values, sums.count); });
    made.setReduceFunction(function(call.reducer, sums.element));
    made.setRoot(call.envelope.root);
    ::gloo::reduce(made);
    if (root) divide(call, sums);
  }

  void all_gather(const Collective& call) const {
    const ErasedSpan &shard = call.in, &whole = call.out;
    const bool in_place = shard.data == whole.data + call.shards.begin(rank_) * whole.element;
    bool equal = true;
    for (int rank = 1; rank < size_; ++rank) equal = equal && call.shards.size(rank) == call.shards.size(0);
    if (equal) {
      auto made = options<::gloo::AllgatherOptions>(call);
      if (!in_place) made.setInput(shard.data, shard.bytes());
      made.setOutput(whole.data, whole.bytes());
      return ::gloo::allgather(made);
    }
    auto made = options<::gloo::AllgathervOptions>(call);
    std::vector<std::size_t> bytes;
    for (int rank = 0; rank < size_; ++rank) bytes.push_back(call.shards.size(rank) * whole.element);
    if (!in_place) made.setInput(shard.data, shard.bytes());
    made.setOutput(whole.data, std::move(bytes));
    ::gloo::allgatherv(made);
  }

  void gather(const Collective& call) const {
    const ErasedSpan &shard = call.in, &whole = call.out;
    const std::uint64_t slot = slot_of(call, 0);
    if (rank_ != call.envelope.root) return send(shard, call.envelope.root, slot);
    Transfers transfers{*this, {}, whole};
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) transfers.receive(rank, slot, call.shards);
    copy(whole.data + call.shards.begin(rank_) * whole.element, shard.data, shard.bytes());
    transfers.wait();
  }

  void scatter(const Collective& call) const {
    const ErasedSpan &whole = call.in, &shard = call.out;
    const std::uint64_t slot = slot_of(call, 0);
    if (rank_ != call.envelope.root) return receive(shard, call.envelope.root, slot);
    Transfers transfers{*this, whole, {}};
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) transfers.send(rank, slot, call.shards);
    copy(shard.data, whole.data + call.shards.begin(rank_) * whole.element, shard.bytes());
    transfers.wait();
  }

  /// If two ranks disagree on the size of a message between them, their messages never match.
  void all_to_all(const Collective& call) const {
    Transfers transfers{*this, call.in, call.out};
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
      transfers.receive(from, slot_of(call, call.received.size(from)), call.received);
      transfers.send(to, slot_of(call, call.shards.size(to)), call.shards);
    }
    const std::size_t element = call.in.element, mine = std::min(call.shards.size(rank_), call.received.size(rank_)) * element;
    copy(call.out.data + call.received.begin(rank_) * element, call.in.data + call.shards.begin(rank_) * element, mine);
    transfers.wait();
  }

  /// Runs a ring algorithm. Each shard starts at the right neighbour of its destination and travels to the right. Each rank on its way adds
  /// its own values.
  void reduce_scatter(const Collective& call) {
    const ErasedSpan &whole = call.in, &shard = call.out;
    const std::size_t element = whole.element, room = (call.shards.largest(size_) * element + 63) / 64 * 64;
    const std::uint64_t slot = slot_of(call, 0);
    const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    std::byte* const sums = scratch(2 * room);
    const GlooBuffer own = buffer(whole), passing = context_->createUnboundBuffer(sums, 2 * room);
    for (int step = 0; step + 1 < size_; ++step) {
      const int out = (rank_ + 2 * size_ - step - 1) % size_, in = (rank_ + 2 * size_ - step - 2) % size_;
      const std::size_t out_bytes = call.shards.size(out) * element, in_bytes = call.shards.size(in) * element;
      const std::size_t place = as_size(step % 2) * room;
      ::gloo::transport::UnboundBuffer& from = step == 0 ? *own : *passing;
      if (in_bytes > 0) passing->recv(left, slot, place, in_bytes);
      if (out_bytes > 0) from.send(right, slot, step == 0 ? call.shards.begin(out) * element : room - place, out_bytes);
      if (in_bytes > 0) {
        passing->waitRecv(no_timeout);
        const std::byte* const mine = whole.data + call.shards.begin(in) * element;
        if (step + 2 < size_) {
          call.reducer.combine(sums + place, mine, in_bytes);
        } else {
          copy(shard.data, mine, in_bytes);
          call.reducer.combine(shard.data, sums + place, in_bytes);
        }
      }
      if (out_bytes > 0) from.waitSend(no_timeout);
    }
    if (shard.count > 0) divide(call, shard);
  }

  /// Messages of one rank that send parts of one span and receive into parts of another.
  class Transfers {
   public:
    Transfers(const Collectives& group, const ErasedSpan& out, const ErasedSpan& in)
        : element_{std::max(out.element, in.element)}, out_{group.buffer(out)}, in_{group.buffer(in)} {}
    void send(int to, std::uint64_t slot, const Shards& shards) {
      if (shards.size(to) == 0) return;
      out_->send(to, slot, shards.begin(to) * element_, shards.size(to) * element_);
      ++sends_;
    }
    void receive(int from, std::uint64_t slot, const Shards& shards) {
      if (shards.size(from) == 0) return;
      in_->recv(from, slot, shards.begin(from) * element_, shards.size(from) * element_);
      ++receives_;
    }
    void wait() {
      for (; receives_ > 0; --receives_) in_->waitRecv(no_timeout);
      for (; sends_ > 0; --sends_) out_->waitSend(no_timeout);
    }

   private:
    std::size_t element_;
    GlooBuffer out_, in_;
    int sends_ = 0, receives_ = 0;
  };

  void send(const ErasedSpan& shard, int to, std::uint64_t slot) const {
    if (shard.count == 0) return;
    const GlooBuffer out = buffer(shard);
    out->send(to, slot);
    out->waitSend(no_timeout);
  }
  void receive(const ErasedSpan& shard, int from, std::uint64_t slot) const {
    if (shard.count == 0) return;
    const GlooBuffer in = buffer(shard);
    in->recv(from, slot);
    in->waitRecv(no_timeout);
  }

  /// Returns the slot of a collective's messages. Before a group's channel is mixed in, the highest byte of a slot tells its uses apart:
  /// below 0x10 for Gloo's collectives, 0xf0 for this class, 0xf1 for the user's messages, 0xfe and 0xff for the World.
  static std::uint64_t slot_of(const Collective& call, std::size_t count) { return (mix(call.fingerprint, count) >> 8) | 0xf0ULL << 56; }
  [[nodiscard]] GlooBuffer buffer(const ErasedSpan& memory) const { return context_->createUnboundBuffer(memory.data, memory.bytes()); }
  /// Returns memory that is aligned for any element. Earlier contents may be lost.
  std::byte* scratch(std::size_t bytes) {
    if (scratch_.size() < bytes) scratch_ = Region::ordinary(bytes);
    return scratch_.data();
  }

  std::shared_ptr<Context> context_;
  int rank_, size_;
  Region scratch_;
};

}  // namespace pdp::comm::gloo
