#pragma once

/// Definitions for pdp/data/part_sampler.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_batches.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

namespace detail {

PDP_INLINE std::size_t size_of_part(const PartBatches& batches, Shard shard) {
  check_shard(shard);
  if (as_int(batches.sizes().size()) != shard.count)
    throw ConfigError{text("expected a part for each of ", shard.count, " shares, found ", batches.sizes().size(), " parts.")};
  return as_size(batches.sizes()[as_size(shard.index)]);
}

}  // namespace detail

PDP_INLINE PartSampler::PartSampler(PartBatches batches, Shard shard, std::uint64_t seed, bool shuffle)
    : batches_{std::move(batches)}, shard_{shard}, seed_{seed}, shuffle_{shuffle}, order_(detail::size_of_part(batches_, shard)) {
  start(0);
}

PDP_INLINE void PartSampler::start(Index epoch) {
  epoch_ = epoch;
  const random::Key key = order_key(seed_, epoch);
  put_in_order(order_, shuffle_, shard_.index == 0 ? key : random::make_key(key.value, "share", shard_.index));
}

PDP_INLINE std::span<const Index> PartSampler::share(Index step) const {
  const Rows rows = batches_.rows(step, shard_.index);
  return std::span{order_}.subspan(as_size(rows.first), as_size(rows.size()));
}

}  // namespace pdp::data
