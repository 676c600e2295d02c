#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/data/share_order.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

/// How a dataset lies on the ranks: each rank has the whole set, or its share has a part of the set (data::PerRank).
struct DataDivision {
  Index samples = 0;           // in the whole set
  std::vector<Index> parts{};  // sizes of the parts, in the order of shares; empty if each rank has the whole set

  /// Returns the samples that a share evaluates, as numbers in the dataset of its ranks.
  [[nodiscard]] data::Rows rows_of(data::Shard share) const;
  /// Returns the number of samples that the largest of `count` shares evaluates.
  [[nodiscard]] Index most_rows(int count) const;
  /// Returns the order in which a share trains on its samples.
  [[nodiscard]] data::AnySampler sampler(const TrainerOptions& options, bool shuffle, data::Shard share) const;
};

/// A rank's part of a dataset, as the ranks exchange it.
struct PartOfRank {
  Index share = 0;
  Index samples = 0;
  std::int64_t hash = 0;  // of some samples; 0 if no two ranks have the same share
};

/// Returns the division of a dataset that each rank has as a whole. Throws ConfigError if it is empty.
[[nodiscard]] DataDivision undivided(Index samples);
/// Returns the division of a dataset whose parts the ranks have, for `shares` shares. Throws ConfigError if all parts are empty, or if
/// ranks with the same share have different parts.
[[nodiscard]] DataDivision divided(std::span<const PartOfRank> ranks, int shares);

/// Returns the numbers of up to 16 samples, chosen by a seed: all samples of a smaller dataset.
[[nodiscard]] std::vector<Index> samples_to_compare(Index samples, std::uint64_t seed);

/// Returns a hash of the inputs and targets of samples_to_compare().
template <class Target, class Sample>
[[nodiscard]] std::int64_t hash_of_samples(const data::DatasetView<Target, Sample>& data, std::uint64_t seed) {
  const std::vector<Index> which = samples_to_compare(data.size(), seed);
  std::vector<Sample> x(which.size() * as_size(data.sample_shape().elements()));
  std::vector<Target> y(which.size() * as_size(data.target_shape().elements()));
  data.gather(which, x, y);
  const std::array hashes{random::hash_of(std::span<const Sample>{x}), random::hash_of(std::span<const Target>{y})};
  return random::hash_of(std::span<const std::int64_t>{hashes});
}

/// Returns a loader for the training on a dataset, which must outlive it.
template <class Target, class Sample>
[[nodiscard]] data::Loader<data::DatasetView<Target, Sample>> training_loader(const data::DatasetView<Target, Sample>& data,
                                                                              const DataDivision& division, const TrainerOptions& options,
                                                                              bool shuffle, data::Shard share) {
  return data::Loader<data::DatasetView<Target, Sample>>{data, division.sampler(options, shuffle, share), share};
}

/// Returns the arguments of a call with a dataset for the ranks to compare: of a PerRank only the shapes, of any other dataset also the
/// size and some samples. `ranks`: the size of the world. A single rank reads no samples.
template <class Target, class Sample>
[[nodiscard]] CallArguments arguments_of(TrainerCall call, const data::DatasetView<Target, Sample>& data, bool is_per_rank,
                                         std::uint64_t seed, int ranks) {
  CallArguments given{.call = call, .per_rank = is_per_rank, .sample = data.sample_shape(), .target = data.target_shape()};
  if (!is_per_rank) {
    given.samples = data.size();
    if (ranks > 1) given.data = hash_of_samples(data, seed);
  }
  return given;
}

/// Returns how a dataset lies on the ranks. Exchanges the sizes of the parts if it is a PerRank. Every rank makes this call, after the
/// ranks have compared arguments_of() the dataset. Throws ConfigError as undivided() and divided() do, on every rank. `share`: that of this
/// rank.
template <comm::Communicator C, class D, class Target, class Sample>
[[nodiscard]] DataDivision division_of(C& world, const D& device, const data::DatasetView<Target, Sample>& data, bool is_per_rank,
                                       data::Shard share, std::uint64_t seed) {
  if (!is_per_rank) return undivided(data.size());
  const bool has_partners = world.size() > share.count;
  const std::array<std::int64_t, 3> own{share.index, data.size(), has_partners ? hash_of_samples(data, seed) : 0};
  std::vector<std::int64_t> all(own.begin(), own.end());
  if (world.size() > 1) {
    all.resize(own.size() * as_size(world.size()));
    engine::HostCalls{world, device}.all_gather(std::span<const std::int64_t>{own}, std::span{all});
  }
  std::vector<PartOfRank> ranks;
  for (std::size_t at = 0; at < all.size(); at += own.size()) ranks.push_back({all[at], all[at + 1], all[at + 2]});
  return divided(ranks, share.count);
}

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/data_division.hpp>
#endif
