#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
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

/// Returns the contiguous rows of a global batch that belong to a shard. The shares of different shards differ in size by at most 1. A
/// share may be empty.
constexpr Rows shard_rows(Index rows, Shard shard) { return {rows * shard.index / shard.count, rows * (shard.index + 1) / shard.count}; }

/// Throws ConfigError unless 0 <= index < count.
void check_shard(Shard shard);

/// Returns the key of the order of samples in an epoch.
[[nodiscard]] random::Key order_key(std::uint64_t seed, Index epoch);
/// Fills a list with the numbers from 0 on: in the order of `key` if shuffled, else in ascending order.
void put_in_order(std::span<Index> list, bool shuffled, random::Key key);

/// The order of the samples in each epoch, cut into global batches. The last batch of an epoch may be short; it is not dropped. If there
/// are fewer samples than global_batch, an epoch is one short batch. The order depends only on (samples, seed, epoch): it is the same for
/// every number of shards and on every platform.
class Sampler {
 public:
  /// Starts epoch 0. Throws ConfigError unless samples >= 1 and global_batch >= 1. Allocates its memory here and none later.
  Sampler(Index samples, Index global_batch, std::uint64_t seed, bool shuffle = true);

  [[nodiscard]] Index samples() const { return as_index(order_.size()); }
  [[nodiscard]] Index global_batch() const { return global_batch_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Index epoch() const { return epoch_; }

  /// Returns the number of global batches in an epoch.
  [[nodiscard]] Index steps() const { return (samples() + global_batch_ - 1) / global_batch_; }

  /// Returns the number of rows in the largest share of a shard: the capacity that a buffer needs.
  [[nodiscard]] Index largest_share(Shard shard) const { return (std::min(global_batch_, samples()) + shard.count - 1) / shard.count; }

  /// Orders the samples for an epoch. Spans that were returned before show the new order.
  void start(Index epoch);

  /// Returns the sample numbers of the epoch's global batch `step`. Throws ConfigError unless 0 <= step < steps().
  [[nodiscard]] std::span<const Index> batch(Index step) const;

  /// Returns the sample numbers of the shard's rows of global batch `step`. May be empty. Throws ConfigError as batch() and check_shard()
  /// do.
  [[nodiscard]] std::span<const Index> share(Index step, Shard shard) const;

 private:
  Index global_batch_;
  std::uint64_t seed_;
  bool shuffle_;
  Index epoch_ = 0;
  std::vector<Index> order_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/sampler.hpp>
#endif
