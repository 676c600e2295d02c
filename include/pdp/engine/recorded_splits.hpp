#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::engine {

/// The ways in which rows were split over ranks that record their steps together. All ranks record a step, and carry out a record, or none
/// does; so what decides is what all of them know: a split is the number of rows on all ranks, of which each share follows, or every
/// rank's.
class RecordedSplits {
 public:
  /// Takes a split in, and says whether its steps are recorded: not of ever more. Throws ConfigError where the share of this rank does not
  /// follow.
  bool admit(std::span<const Index> split, Index own_rows, int rank) {
    const auto found = std::ranges::find_if(known_, [&](const Known& each) { return std::ranges::equal(each.split, split); });
    if (found != known_.end()) {
      if (found->own_rows == own_rows) return true;
      throw ConfigError{text("rank ", rank, " has ", own_rows, " of ", split.front(), " rows, but had ", found->own_rows,
                             " when such a step was recorded, and the other ranks cannot know that the shares have changed; let the ranks "
                             "count their rows (global_rows = 0), or make the device with graphs = false")};
    }
    if (known_.size() == most) return false;
    known_.push_back({{split.begin(), split.end()}, own_rows});
    return true;
  }

 private:
  static constexpr std::size_t most = 32;
  struct Known {
    std::vector<Index> split;
    Index own_rows;
  };
  std::vector<Known> known_;
};

}  // namespace pdp::engine
