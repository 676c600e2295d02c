#pragma once

#include <span>
#include <variant>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// The order of samples that a Loader reads: of a whole dataset, or of one part of a dataset.
using AnySampler = std::variant<Sampler, PartSampler>;

namespace detail {

/// The order of a Loader's samples: the same functions for both samplers.
class ShareOrder {
 public:
  /// Throws ConfigError unless the shard is valid, and that of a PartSampler.
  ShareOrder(AnySampler sampler, Shard shard);

  [[nodiscard]] Index samples() const;
  [[nodiscard]] Index steps() const;
  [[nodiscard]] Index largest_share() const;
  void start(Index epoch);
  /// Returns the epoch that was started, for the dataset.
  [[nodiscard]] TrainingEpoch epoch() const;
  /// Returns the sample numbers of the share of a step.
  [[nodiscard]] std::span<const Index> share(Index step) const;
  /// Returns the number of shares if their rows do not follow from the rows of the global batch, else 0.
  [[nodiscard]] Index counted_shares() const;
  /// Returns the rows of the global batch of a step. Writes those of each share to `to`, which has counted_shares() elements.
  [[nodiscard]] Index global_rows(Index step, std::span<Index> to) const;

 private:
  AnySampler sampler_;
  Shard shard_;
};

}  // namespace detail

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/share_order.hpp>
#endif
