#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The arguments of one rank for split(). The rank goes with the ranks of the same colour, ordered by key and then by rank.
struct ColorAndKey {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

/// The ranks of one colour, in the order of their new group. `all`: what each rank of the old one has given.
std::vector<int> members_of_color(std::span<const ColorAndKey> all, int color);

/// The place of a rank among these.
int place_among(std::span<const int> members, int rank);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/backend/source/members_of_color.hpp>
#endif
