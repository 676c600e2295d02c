#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// The arguments of one rank for split(). The rank goes with the ranks of the same colour, ordered by key and then by rank.
struct ColorAndKey {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

/// The ranks of one colour, in the order of their new group. `all`: what each rank of the old one has given.
inline std::vector<int> members_of_color(std::span<const ColorAndKey> all, int color) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].color == color) members.push_back(as_int(rank));
  std::ranges::stable_sort(members, {}, [all](int rank) { return all[as_size(rank)].key; });
  return members;
}

/// The place of a rank among these.
inline int place_among(std::span<const int> members, int rank) { return as_int(std::ranges::find(members, rank) - members.begin()); }

}  // namespace pdp::comm
