#pragma once

#include <concepts>
#include <cstddef>

#include <pdp/comm/message/together/board.hpp>

namespace pdp::comm::together {

/// Finds values in memory that all ranks of a group can access.
///
/// - find(values, bytes): returns the location of the values.
/// - at(source, world_rank): returns the address of the values that rank `world_rank` has published as `source`. The memory is known here,
///   because this rank's own values lie in it, too.
template <class S>
concept Sources = requires(const S& sources, const std::byte* values, std::size_t bytes, const Source& source, int world_rank) {
  { sources.find(values, bytes) } -> std::same_as<Source>;
  { sources.at(source, world_rank) } -> std::same_as<std::byte*>;
};

/// A rank of a group, as seen by the others. `bell`: wakes the rank if there may be something for it to do.
template <class Bell>
struct Partner {
  int world_rank;
  Board* board;
  Bell* bell;
};

}  // namespace pdp::comm::together
