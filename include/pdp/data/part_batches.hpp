#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

/// The global batches of an epoch over a dataset in parts (see PerRank). Share k takes its rows from part k.
///
/// All parts advance at the same pace and end together. Let n(k) be the size of part k, and c(k) the rows of share k in a full global batch
/// (see shard_rows). The longest part is the one with the largest n / c, so an epoch has its n / c steps, rounded up. Its share takes c
/// rows in each step, and fewer in the last one.
///
/// When a fraction p of the longest part has been taken, share k has taken n(k) * p samples, rounded down. So it takes at most c(k) rows in
/// a step. If all parts advance equally, all global batches but the last one are full. Otherwise they have fewer rows.
class PartBatches {
 public:
  static constexpr Index most_samples = std::numeric_limits<std::int32_t>::max();  // in a part

  /// `sizes`: the samples of each share's part, in the order of shares. Throws ConfigError unless global_batch >= 1, the sizes are from 0
  /// to most_samples and not all 0, and each share whose part has samples has rows in a full global batch.
  PartBatches(std::vector<Index> sizes, Index global_batch);

  [[nodiscard]] std::span<const Index> sizes() const { return sizes_; }
  /// Returns the number of samples in all parts.
  [[nodiscard]] Index samples() const;
  /// Returns the number of global batches in an epoch.
  [[nodiscard]] Index steps() const { return (longest_ + rows_of_longest_ - 1) / rows_of_longest_; }

  /// Returns the rows that a share takes in a step, as places in the order of its part. May be empty. Throws ConfigError unless
  /// 0 <= step < steps() and there is such a share.
  [[nodiscard]] Rows rows(Index step, int share) const;
  /// Returns the number of rows in the largest share of a step: the capacity that a buffer needs.
  [[nodiscard]] Index largest(int share) const;
  /// Writes the number of rows of each share to `to`, which has one element for each. Returns their sum, the rows of the global batch.
  Index count(Index step, std::span<Index> to) const;

 private:
  /// Returns how many samples of its part a share takes before a step.
  [[nodiscard]] Index before(Index step, Index size) const;
  void check(Index step, int share) const;

  std::vector<Index> sizes_;
  Index global_batch_;
  Index longest_ = 0, rows_of_longest_ = 1;  // the size of the longest part, and the rows of its share in a full global batch
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/part_batches.hpp>
#endif
