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

/// The splits of rows over ranks for which all ranks record their steps. All ranks record a step and replay a record, or none does, so the
/// decision depends only on what all of them know. A split is one number, the rows over all ranks, from which each share follows, or the
/// numbers of rows of all shares or of all ranks.
class RecordedSplits {
 public:
  /// Adds a split. Returns whether its steps are recorded; at most 32 splits are. Throws ConfigError if this rank's share is not the same
  /// as when the split was added.
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
