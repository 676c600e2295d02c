#pragma once

#include <concepts>
#include <cstddef>

#include <pdp/comm/message/together/board.hpp>

namespace pdp::comm::together {

/// What a rank knows of the memory that all ranks of its groups see.
///
/// - find(values, bytes): where they lie.
/// - at(source, world_rank): the same place in that rank's part of the memory. It is known here, as this rank's own values lie in it, too.
template <class S>
concept Sources = requires(const S& sources, const std::byte* values, std::size_t bytes, const Source& source, int world_rank) {
  { sources.find(values, bytes) } -> std::same_as<Source>;
  { sources.at(source, world_rank) } -> std::same_as<std::byte*>;
};

/// A rank of a group, as the others see it. `bell`: rung when there may be something for it to do.
template <class Bell>
struct Partner {
  int world_rank;
  Board* board;
  Bell* bell;
};

}  // namespace pdp::comm::together
