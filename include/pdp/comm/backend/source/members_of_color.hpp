#pragma once

/// Definitions for pdp/comm/backend/members_of_color.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE std::vector<int> members_of_color(std::span<const ColorAndKey> all, int color) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].color == color) members.push_back(as_int(rank));
  std::ranges::stable_sort(members, {}, [all](int rank) { return all[as_size(rank)].key; });
  return members;
}

PDP_INLINE int place_among(std::span<const int> members, int rank) { return as_int(std::ranges::find(members, rank) - members.begin()); }

}  // namespace pdp::comm
