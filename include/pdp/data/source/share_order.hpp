#pragma once

/// Definitions for pdp/data/share_order.hpp; see pdp/core/separate_compilation.hpp.

#include <numeric>
#include <span>
#include <utility>
#include <variant>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/data/share_order.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data::detail {

PDP_INLINE ShareOrder::ShareOrder(AnySampler sampler, Shard shard) : sampler_{std::move(sampler)}, shard_{shard} {
  check_shard(shard);
  if (const auto* part = std::get_if<PartSampler>(&sampler_); part != nullptr && part->shard() != shard)
    throw ConfigError{text("expected the sampler of share ", shard.index, " of ", shard.count, ", found one of share ", part->shard().index,
                           " of ", part->shard().count, ". Give the loader the shard of its sampler.")};
}

PDP_INLINE Index ShareOrder::samples() const {
  return std::visit([](const auto& sampler) { return sampler.samples(); }, sampler_);
}

PDP_INLINE Index ShareOrder::steps() const {
  if (const auto* part = std::get_if<PartSampler>(&sampler_)) return part->batches().steps();
  return std::get<Sampler>(sampler_).steps();
}

PDP_INLINE Index ShareOrder::largest_share() const {
  if (const auto* part = std::get_if<PartSampler>(&sampler_)) return part->batches().largest(shard_.index);
  return std::get<Sampler>(sampler_).largest_share(shard_);
}

PDP_INLINE void ShareOrder::start(Index epoch) {
  std::visit([epoch](auto& sampler) { sampler.start(epoch); }, sampler_);
}

PDP_INLINE TrainingEpoch ShareOrder::epoch() const {
  TrainingEpoch epoch = std::visit([](const auto& sampler) { return TrainingEpoch{sampler.seed(), sampler.epoch()}; }, sampler_);
  if (const auto* part = std::get_if<PartSampler>(&sampler_)) {
    const auto before = part->batches().sizes().first(as_size(shard_.index));
    epoch.first_sample = std::accumulate(before.begin(), before.end(), Index{0});
  }
  return epoch;
}

PDP_INLINE std::span<const Index> ShareOrder::share(Index step) const {
  if (const auto* part = std::get_if<PartSampler>(&sampler_)) return part->share(step);
  return std::get<Sampler>(sampler_).share(step, shard_);
}

PDP_INLINE Index ShareOrder::counted_shares() const { return std::holds_alternative<PartSampler>(sampler_) ? shard_.count : 0; }

PDP_INLINE Index ShareOrder::global_rows(Index step, std::span<Index> to) const {
  if (const auto* part = std::get_if<PartSampler>(&sampler_)) return part->batches().count(step, to);
  return as_index(std::get<Sampler>(sampler_).batch(step).size());
}

}  // namespace pdp::data::detail
