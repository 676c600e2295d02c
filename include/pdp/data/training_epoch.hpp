#pragma once

#include <cstdint>

#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::data {

/// An epoch of a training, as gather() of a dataset gets it to change samples at random (augmentation). An evaluation has none.
///
/// The changes of a sample must depend on its key alone. Then they are the same for any number of ranks, any batch size and any strategy,
/// and when a training continues from a checkpoint.
struct TrainingEpoch {
  std::uint64_t seed = 0;  // TrainerOptions::seed
  Index number = 0;        // from 0
  Index first_sample = 0;  // number of sample 0 in the whole dataset; above 0 only for a part of it (see PerRank)
  int depth = 0;           // number of wrappers around this dataset that draw random numbers of their own

  /// Returns the key of the random numbers of a sample in this epoch. `sample`: its number as gather() gets it.
  [[nodiscard]] constexpr random::Key key(Index sample) const {
    return random::make_key(seed, "sample in epoch", number, depth, first_sample + sample);
  }
  /// Returns the epoch for the dataset inside a wrapper that draws random numbers: the keys of its samples are others.
  [[nodiscard]] constexpr TrainingEpoch inner() const { return {seed, number, first_sample, depth + 1}; }

  friend constexpr bool operator==(const TrainingEpoch&, const TrainingEpoch&) = default;
};

}  // namespace pdp::data
