#pragma once

/// Definitions for pdp/engine/recorded_splits.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/recorded_splits.hpp>

namespace pdp::engine {

PDP_INLINE bool RecordedSplits::admit(std::span<const Index> split, Index own_rows, int rank) {
  const auto found = std::ranges::find_if(known_, [&](const Known& each) { return std::ranges::equal(each.split, split); });
  if (found != known_.end()) {
    if (found->own_rows == own_rows) return true;
    throw ConfigError{text("rank ", rank, " has ", own_rows, " of ", split.front(), " rows, but had ", found->own_rows,
                           " when such a step was recorded, and the other ranks cannot detect this change; let the ranks "
                           "count their rows (global_rows = 0), or create the device with graphs = false")};
  }
  if (known_.size() == most) return false;
  known_.push_back({{split.begin(), split.end()}, own_rows});
  return true;
}

}  // namespace pdp::engine
