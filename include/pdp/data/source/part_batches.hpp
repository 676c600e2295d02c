#pragma once

/// Definitions for pdp/data/part_batches.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_batches.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

PDP_INLINE PartBatches::PartBatches(std::vector<Index> sizes, Index global_batch) : sizes_{std::move(sizes)}, global_batch_{global_batch} {
  if (global_batch < 1)
    throw ConfigError{text("expected a global batch of 1 sample or more, found ", global_batch, ". Choose a larger one.")};
  const int shares = as_int(sizes_.size());
  for (int share = 0; share < shares; ++share) {
    const Index size = sizes_[as_size(share)], rows = shard_rows(global_batch, {share, shares}).size();
    if (size < 0 || size > most_samples)
      throw ConfigError{
          text("part ", share, " of the dataset has ", size, " samples, expected 0 to ", most_samples, ". Give each rank a smaller part.")};
    if (size > 0 && rows == 0)
      throw ConfigError{text("a global batch of ", global_batch, " has no row for share ", share, " of ", shares,
                             ", but there are samples in the part of this share. Choose a global batch of ", shares, " or more.")};
    if (size > 0 && size * rows_of_longest_ > longest_ * rows) {
      longest_ = size;
      rows_of_longest_ = rows;
    }
  }
  if (longest_ == 0)
    throw ConfigError{
        text("expected a dataset of 1 sample or more, but all ", shares, " parts of it are empty. Check where the data comes ", "from.")};
}

PDP_INLINE Index PartBatches::samples() const { return std::accumulate(sizes_.begin(), sizes_.end(), Index{0}); }

PDP_INLINE void PartBatches::check(Index step, int share) const {
  if (step < 0 || step >= steps()) throw ConfigError{text("expected a step from 0 to ", steps() - 1, ", found ", step, ".")};
  check_shard({share, as_int(sizes_.size())});
}

PDP_INLINE Index PartBatches::before(Index step, Index size) const { return size * std::min(step * rows_of_longest_, longest_) / longest_; }

PDP_INLINE Rows PartBatches::rows(Index step, int share) const {
  check(step, share);
  const Index size = sizes_[as_size(share)];
  return {before(step, size), before(step + 1, size)};
}

PDP_INLINE Index PartBatches::largest(int share) const {
  check(0, share);
  return std::min(sizes_[as_size(share)], shard_rows(global_batch_, {share, as_int(sizes_.size())}).size());
}

PDP_INLINE Index PartBatches::count(Index step, std::span<Index> to) const {
  Index sum = 0;
  for (int share = 0; share < as_int(sizes_.size()); ++share) sum += to[as_size(share)] = rows(step, share).size();
  return sum;
}

}  // namespace pdp::data
