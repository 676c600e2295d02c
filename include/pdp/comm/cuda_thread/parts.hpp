#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pdp/comm/cuda_thread/reductions.hpp>
#include <pdp/comm/cuda_thread/world.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::cuda_thread {

/// One rank's part of a collective, enqueued on its stream. In a reduction, the rank combines its share of all ranks' values and writes the
/// result to each destination. In other collectives, each receiver copies from the memory of the senders.
class Parts {
 public:
  Parts(const Call& call, int rank, int device, cudaStream_t stream) : call_{call}, rank_{rank}, device_{device}, stream_{stream} {}

  /// Enqueues this rank's part. A barrier has none.
  void give() {
    const int size = as_int(call_.all.size()), root = call_.envelope.root;
    switch (call_.envelope.verb) {
      case Verb::broadcast:
        if (rank_ != root) copy(call_.out, of(root).in);
        break;
      case Verb::all_reduce:
        for (int rank = 0; rank < size; ++rank) add_destination(slice(of(rank).out));
        reduce([&](const Call& each) { return slice(each.in); });
        break;
      case Verb::reduce:
        add_destination(slice(of(root).out));
        reduce([&](const Call& each) { return slice(each.in); });
        break;
      case Verb::reduce_scatter:
        add_destination(call_.out);
        reduce([&](const Call& each) { return shard(each.in, call_.cut, rank_); });
        break;
      case Verb::gather:
        if (rank_ != root) break;
        [[fallthrough]];
      case Verb::all_gather:
        for_all([&](int rank) { copy(shard(call_.out, call_.cut, rank), of(rank).in); });
        break;
      case Verb::scatter:
        copy(call_.out, shard(of(root).in, call_.cut, rank_));
        break;
      case Verb::all_to_all:
        for_all([&](int rank) { copy(shard(call_.out, call_.received, rank), shard(of(rank).in, of(rank).cut, rank_)); });
        break;
      case Verb::send:
      case Verb::barrier:
      case Verb::split:
        break;
    }
  }

  /// Enqueues a copy, unless both spans are the same memory.
  void copy(const ErasedSpan& to, const ErasedSpan& from) {
    if (to.data == from.data || to.count == 0) return;
    cuda::check("cudaMemcpyAsync", cudaMemcpyAsync(to.data, from.data, to.bytes(), cudaMemcpyDefault, stream_));
  }

 private:
  [[nodiscard]] const Call& of(int rank) const { return *call_.all[as_size(rank)]; }

  /// Calls f for all ranks, beginning with this one, so that not all ranks read from the same one at once.
  template <class F>
  void for_all(const F& f) const {
    const int size = as_int(call_.all.size());
    for (int step = 0; step < size; ++step) f((rank_ + step) % size);
  }

  static ErasedSpan shard(const ErasedSpan& whole, const Shards& cut, int rank) {
    return {whole.data + cut.begin(rank) * whole.element, cut.size(rank), whole.element, whole.type};
  }
  /// Returns this rank's share of memory that has the same size on all ranks.
  [[nodiscard]] ErasedSpan slice(const ErasedSpan& whole) const {
    const int size = as_int(call_.all.size());
    return {whole.data + block_begin(whole.count, size, rank_) * whole.element, block_size(whole.count, size, rank_), whole.element,
            whole.type};
  }

  void add_destination(const ErasedSpan& memory) { destinations_[count_++] = memory.data; }
  template <class Source>
  void reduce(const Source& source) {
    std::array<const std::byte*, cuda::most_sources> sources{};
    std::size_t elements = 0;
    for (std::size_t rank = 0; rank < call_.all.size(); ++rank) {
      const ErasedSpan from = source(*call_.all[rank]);
      sources[rank] = from.data;
      elements = from.count;
    }
    const Envelope& envelope = call_.envelope;
    cuda_thread::reduce(envelope.type, envelope.reduction, device_, stream_, std::span{sources}.first(call_.all.size()),
                        std::span{destinations_}.first(count_), elements);
  }

  const Call& call_;
  int rank_, device_;
  cudaStream_t stream_;
  std::array<std::byte*, cuda::most_sources> destinations_{};
  std::size_t count_ = 0;
};

}  // namespace pdp::comm::cuda_thread
