#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The arguments of one rank for split(). The ranks of one colour form a group, ordered by key and then by rank.
struct ColorAndKey {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

/// Returns the ranks of one colour, in the order of their new group. `all`: the arguments of each rank of the old group.
std::vector<int> members_of_color(std::span<const ColorAndKey> all, int color);

/// Returns the index of a rank in `members`.
int place_among(std::span<const int> members, int rank);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/backend/source/members_of_color.hpp>
#endif
