#pragma once

/// Definitions for pdp/data/sampler.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

PDP_INLINE void check_shard(Shard shard) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    throw ConfigError{text("expected a shard index from 0 to count - 1, found index ", shard.index, " of ", shard.count,
                           ". Give the rank as the index and the number of ranks as the count.")};
}

namespace detail {

PDP_INLINE std::size_t checked_size(Index samples, Index global_batch) {
  if (samples < 1)
    throw ConfigError{text("expected a training set of 1 sample or more, found ", samples, ". Check where the data comes from.")};
  if (global_batch < 1)
    throw ConfigError{text("expected a global batch of 1 sample or more, found ", global_batch, ". Choose a larger one.")};
  return as_size(samples);
}

}  // namespace detail

PDP_INLINE random::Key order_key(std::uint64_t seed, Index epoch) { return random::make_key(seed, "order of samples", epoch); }

PDP_INLINE void put_in_order(std::span<Index> list, bool shuffled, random::Key key) {
  std::iota(list.begin(), list.end(), Index{0});
  if (!shuffled) return;
  random::Stream stream{key};
  for (std::size_t left = list.size(); left > 1; --left) std::swap(list[left - 1], list[stream.below(left)]);  // Fisher-Yates shuffle
}

PDP_INLINE Sampler::Sampler(Index samples, Index global_batch, std::uint64_t seed, bool shuffle)
    : global_batch_{global_batch}, seed_{seed}, shuffle_{shuffle}, order_(detail::checked_size(samples, global_batch)) {
  start(0);
}

PDP_INLINE void Sampler::start(Index epoch) {
  epoch_ = epoch;
  put_in_order(order_, shuffle_, order_key(seed_, epoch));
}

PDP_INLINE std::span<const Index> Sampler::batch(Index step) const {
  if (step < 0 || step >= steps())
    throw ConfigError{text("expected a step from 0 to ", steps() - 1, " (", samples(), " samples in global batches of ", global_batch_,
                           "), found ", step, ". Call start(epoch) for the next epoch.")};
  const auto first = as_size(step * global_batch_);
  return std::span{order_}.subspan(first, std::min(as_size(global_batch_), order_.size() - first));
}

PDP_INLINE std::span<const Index> Sampler::share(Index step, Shard shard) const {
  check_shard(shard);
  const auto whole = batch(step);
  const Rows rows = shard_rows(as_index(whole.size()), shard);
  return whole.subspan(as_size(rows.first), as_size(rows.size()));
}

}  // namespace pdp::data
