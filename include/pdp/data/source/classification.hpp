#pragma once

/// Definitions for pdp/data/classification.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/classification.hpp>
#include <pdp/data/in_memory.hpp>

namespace pdp::data {

namespace detail::synthetic {

constexpr Index clusters_per_class = 10;

/// Returns the dimensions in random order. Those in the first half of the list are informative.
PDP_INLINE std::vector<std::size_t> shuffled_dimensions(const SyntheticClassification& set) {
  std::vector<std::size_t> order(as_size(set.width));
  std::iota(order.begin(), order.end(), std::size_t{0});
  random::Stream stream{random::make_key(set.seed, "toy dimensions")};
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[stream.below(left)]);
  return order;
}

/// The centre of a cluster and the matrix [informative, informative] that mixes its points.
struct Cluster {
  std::vector<float> centre, mixing;

  Cluster(const SyntheticClassification& set, std::uint64_t number, std::size_t informative)
      : centre(informative), mixing(informative * informative) {
    random::fill_uniform<float>(random::make_key(set.seed, "toy mixing", number), 0, mixing);
    for (float& each : mixing) each = 2 * each - 1;
    random::Stream corner{random::make_key(set.seed, "toy corner", number)};
    for (float& each : centre) each = corner.below(2) == 0 ? -1.0f : 1.0f;
  }

  /// Returns the centre plus a normally distributed point times the matrix.
  [[nodiscard]] std::vector<float> point(const SyntheticClassification& set, Index sample) const {
    const std::size_t size = centre.size();
    std::vector<float> normal(size), mixed = centre;
    random::fill_normal<float>(random::make_key(set.seed, "toy point", sample), 0, normal);
    for (std::size_t k = 0; k < size; ++k)
      for (std::size_t d = 0; d < size; ++d) mixed[d] += normal[k] * mixing[k * size + d];
    return mixed;
  }
};

/// Generates samples [first, last) of a set.
PDP_INLINE InMemory<std::int32_t> samples(const SyntheticClassification& set, Index first, Index last) {
  const std::size_t width = as_size(set.width), informative = (width + 1) / 2, count = as_size(last - first);
  const auto classes = static_cast<std::uint64_t>(set.classes);
  const std::vector<std::size_t> order = shuffled_dimensions(set);
  std::vector<float> x(count * width), noise(width);
  std::vector<std::int32_t> y(count);

  // The samples of each cluster, so that each cluster is generated once.
  std::vector<std::vector<Index>> members(classes * as_size(clusters_per_class));
  for (Index sample = first; sample < last; ++sample) {
    random::Stream stream{random::make_key(set.seed, "toy cluster", sample)};
    const std::uint64_t cluster = stream.below(members.size());
    members[cluster].push_back(sample);
    const bool wrong = stream.below(100) == 0;
    y[as_size(sample - first)] = static_cast<std::int32_t>(wrong ? stream.below(classes) : cluster % classes);
  }
  for (std::uint64_t number = 0; number < members.size(); ++number) {
    if (members[number].empty()) continue;
    const Cluster cluster{set, number, informative};
    for (const Index sample : members[number]) {
      const std::vector<float> point = cluster.point(set, sample);
      const std::span row = std::span{x}.subspan(as_size(sample - first) * width, width);
      random::fill_normal<float>(random::make_key(set.seed, "toy noise", sample), 0, noise);
      for (std::size_t d = 0; d < width; ++d) row[order[d]] = d < informative ? point[d] : noise[d];
    }
  }
  return {Shape{set.width}, std::move(x), std::move(y)};
}

}  // namespace detail::synthetic

PDP_INLINE Classification make_classification(const SyntheticClassification& set) {
  if (set.samples < 10 || set.width < 1 || set.classes < 1)
    throw ConfigError{text("expected 10 samples or more of 1 value or more in 1 class or more, found ", set.samples, " samples of ",
                           set.width, " values in ", set.classes, " classes")};
  const Index tenth = set.samples / 10;
  return {detail::synthetic::samples(set, 0, tenth), detail::synthetic::samples(set, set.samples - tenth, set.samples), set.classes};
}

}  // namespace pdp::data
