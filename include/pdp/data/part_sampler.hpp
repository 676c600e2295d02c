#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_batches.hpp>

namespace pdp::data {

/// The order of the samples of one part in each epoch, cut into the shares of global batches (see PartBatches). The order depends only on
/// (size of the part, seed, share, epoch). That of share 0 is the order of a Sampler.
class PartSampler {
 public:
  /// Starts epoch 0. `shard`: the share whose part this is. Throws ConfigError unless there is such a share. Allocates its memory here and
  /// none later.
  PartSampler(PartBatches batches, Shard shard, std::uint64_t seed, bool shuffle = true);

  /// Returns the number of samples in this part.
  [[nodiscard]] Index samples() const { return as_index(order_.size()); }
  [[nodiscard]] Shard shard() const { return shard_; }
  [[nodiscard]] const PartBatches& batches() const { return batches_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Index epoch() const { return epoch_; }

  /// Orders the samples for an epoch. Spans that were returned before show the new order.
  void start(Index epoch);

  /// Returns the numbers, within the part, of the samples in the share of global batch `step`. May be empty. Throws ConfigError unless
  /// 0 <= step < batches().steps().
  [[nodiscard]] std::span<const Index> share(Index step) const;

 private:
  PartBatches batches_;
  Shard shard_;
  std::uint64_t seed_;
  bool shuffle_;
  Index epoch_ = 0;
  std::vector<Index> order_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/part_sampler.hpp>
#endif
