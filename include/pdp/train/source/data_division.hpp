#pragma once

/// Definitions for pdp/train/data_division.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/part_batches.hpp>
#include <pdp/data/part_sampler.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/data/share_order.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/options.hpp>

namespace pdp::detail {

PDP_INLINE data::Rows DataDivision::rows_of(data::Shard share) const {
  return parts.empty() ? data::shard_rows(samples, share) : data::Rows{0, parts[as_size(share.index)]};
}

PDP_INLINE Index DataDivision::most_rows(int count) const {
  return parts.empty() ? (samples + count - 1) / count : *std::ranges::max_element(parts);
}

PDP_INLINE data::AnySampler DataDivision::sampler(const TrainerOptions& options, bool shuffle, data::Shard share) const {
  if (parts.empty()) return data::Sampler{samples, options.global_batch, options.seed, shuffle};
  return data::PartSampler{data::PartBatches{parts, options.global_batch}, share, options.seed, shuffle};
}

PDP_INLINE DataDivision undivided(Index samples) {
  if (samples < 1) throw ConfigError{text("expected a dataset of 1 sample or more, found ", samples, "; check where the data comes from")};
  return {samples};
}

PDP_INLINE DataDivision divided(std::span<const PartOfRank> ranks, int shares) {
  DataDivision division{.parts = std::vector<Index>(as_size(shares))};
  std::vector<int> first(as_size(shares), -1);  // of the ranks with a share
  for (int rank = 0; rank < as_int(ranks.size()); ++rank) {
    const PartOfRank& part = ranks[as_size(rank)];
    int& other = first[as_size(part.share)];
    if (other < 0) {
      other = rank;
      division.parts[as_size(part.share)] = part.samples;
      division.samples += part.samples;
      continue;
    }
    const PartOfRank& same = ranks[as_size(other)];
    const auto differ = [&](const std::string& how) {
      throw ConfigError{text("rank ", rank, " was given a data::PerRank with ", how, " rank ", other, ", but both take share ", part.share,
                             " of each batch; give the ranks of a pipeline or of a tensor-parallel group the same part")};
    };
    if (part.samples != same.samples) differ(text(part.samples, " samples instead of the ", same.samples, " of"));
    if (part.hash != same.hash) differ("other samples than");
  }
  if (division.samples < 1)
    throw ConfigError{
        text("expected a dataset of 1 sample or more, but the data::PerRank of every rank is empty; check where the data ", "comes from")};
  return division;
}

PDP_INLINE std::vector<Index> samples_to_compare(Index samples, std::uint64_t seed) {
  constexpr Index most = 16;
  std::vector<Index> which(as_size(std::clamp<Index>(samples, 0, most)));
  std::iota(which.begin(), which.end(), Index{0});
  if (samples <= most) return which;
  random::Stream stream{random::make_key(seed, "samples to compare")};
  for (Index& each : which) each = static_cast<Index>(stream.below(static_cast<std::uint64_t>(samples)));
  return which;
}

}  // namespace pdp::detail
