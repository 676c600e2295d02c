#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::engine {

/// The ways in which rows were split over ranks that record their steps together. All ranks record a step, and carry out a record, or none
/// does; so what decides is what all of them know: a split is the number of rows on all ranks, of which each share follows, or every
/// rank's.
class RecordedSplits {
 public:
  /// Takes a split in, and says whether its steps are recorded: not of ever more. Throws ConfigError where the share of this rank does not
  /// follow.
  bool admit(std::span<const Index> split, Index own_rows, int rank);

 private:
  static constexpr std::size_t most = 32;
  struct Known {
    std::vector<Index> split;
    Index own_rows;
  };
  std::vector<Known> known_;
};

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/recorded_splits.hpp>
#endif
