#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

/// Rows [first, last) of a batch.
struct Rows {
  Index first = 0;
  Index last = 0;
  [[nodiscard]] constexpr Index size() const { return last - first; }
  friend constexpr bool operator==(const Rows&, const Rows&) = default;
};

/// The contiguous rows of a global batch that belong to a shard: the shards' sizes differ by one at most, and may be 0.
constexpr Rows shard_rows(Index rows, Shard shard) { return {rows * shard.index / shard.count, rows * (shard.index + 1) / shard.count}; }

/// Throws ConfigError unless 0 <= index < count.
inline void check_shard(Shard shard) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    throw ConfigError{text("expected a shard index from 0 to count - 1, found index ", shard.index, " of ", shard.count,
                           ". Give the rank as the index and the number of ranks as the count.")};
}

/// The order of the samples in each epoch, cut into global batches; the last one of an epoch may be short, and is used.
/// The order is a function of (samples, seed, epoch) alone: the same for every number of shards, on every platform.
class Sampler {
 public:
  /// Starts epoch 0. Throws ConfigError unless 1 <= global_batch <= samples. Allocates here and never after.
  Sampler(Index samples, Index global_batch, std::uint64_t seed, bool shuffle = true)
      : global_batch_{global_batch}, seed_{seed}, shuffle_{shuffle}, order_(checked_size(samples, global_batch)) {
    start(0);
  }

  [[nodiscard]] Index samples() const { return as_index(order_.size()); }
  [[nodiscard]] Index global_batch() const { return global_batch_; }
  [[nodiscard]] Index epoch() const { return epoch_; }

  /// Global batches of an epoch.
  [[nodiscard]] Index steps() const { return (samples() + global_batch_ - 1) / global_batch_; }

  /// Rows of the largest share that a shard can get: what a buffer must hold.
  [[nodiscard]] Index largest_share(Shard shard) const { return (global_batch_ + shard.count - 1) / shard.count; }

  /// Orders the samples for an epoch. Spans that were given out before show the new order.
  void start(Index epoch) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), Index{0});
    if (!shuffle_) return;
    random::Stream stream{random::make_key(seed_, "order of samples", epoch)};
    for (std::size_t left = order_.size(); left > 1; --left) std::swap(order_[left - 1], order_[stream.below(left)]);  // Fisher and Yates
  }

  /// The samples of the epoch's global batch `step`. Throws ConfigError unless 0 <= step < steps().
  [[nodiscard]] std::span<const Index> batch(Index step) const {
    if (step < 0 || step >= steps())
      throw ConfigError{text("expected a step from 0 to ", steps() - 1, " (", samples(), " samples in global batches of ", global_batch_,
                             "), found ", step, ". Call start(epoch) for the next epoch.")};
    const auto first = as_size(step * global_batch_);
    return std::span{order_}.subspan(first, std::min(as_size(global_batch_), order_.size() - first));
  }

  /// The shard's rows of that global batch; may be empty.
  [[nodiscard]] std::span<const Index> share(Index step, Shard shard) const {
    check_shard(shard);
    const auto whole = batch(step);
    const Rows rows = shard_rows(as_index(whole.size()), shard);
    return whole.subspan(as_size(rows.first), as_size(rows.size()));
  }

 private:
  static std::size_t checked_size(Index samples, Index global_batch) {
    if (samples < 1)
      throw ConfigError{text("expected a training set of 1 sample or more, found ", samples, ". Check where the data comes from.")};
    if (global_batch < 1)
      throw ConfigError{
          text("expected a global batch of 1 sample or more, found ", global_batch, ". Choose a batch size from 1 to ", samples, ".")};
    if (global_batch > samples)
      throw ConfigError{
          text("expected a global batch of at most ", samples, ", the size of the training set, found ", global_batch,
               ". Choose a smaller batch (the global batch is the batch per rank times the number of ranks), or fewer ranks.")};
    return as_size(samples);
  }

  Index global_batch_;
  std::uint64_t seed_;
  bool shuffle_;
  Index epoch_ = 0;
  std::vector<Index> order_;
};

}  // namespace pdp::data
