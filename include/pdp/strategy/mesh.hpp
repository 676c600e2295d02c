#pragma once

#include <cstdint>
#include <vector>

#include <pdp/strategy/strategy.hpp>

namespace pdp::strategy {

/// The ranks of a world as a block with three axes. Neighbours along the tensor axis, which exchange most, have consecutive ranks, so that
/// they share a host if ranks are numbered host by host. The pipeline axis comes next, the data axis last.
struct Mesh {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;

  [[nodiscard]] constexpr std::int64_t size() const { return std::int64_t{data} * pipeline * tensor; }

  /// A rank's position on each axis.
  struct Coordinates {
    int data = 0, pipeline = 0, tensor = 0;
  };
  [[nodiscard]] constexpr Coordinates coordinates(int rank) const {
    return {rank / tensor / pipeline, rank / tensor % pipeline, rank % tensor};
  }

  /// The numbers of a rank's groups in a plan. The ranks of such a group differ in their position on one axis only.
  static constexpr int data_group = 1, pipeline_group = 2, tensor_group = 3;
  /// Returns a rank's groups, in the order of their numbers. Ranks of a group are ordered by their position on the axis.
  [[nodiscard]] constexpr std::vector<GroupSpec> groups(int rank) const {
    const auto [d, p, t] = coordinates(rank);
    return {{p * tensor + t, d}, {d * tensor + t, p}, {d * pipeline + p, t}};
  }

  /// Throws ConfigError unless each axis is at least 1 and their product is the size of the world.
  constexpr void check(int world) const {
    if (data < 1 || pipeline < 1 || tensor < 1 || size() != world)
      throw ConfigError{text("a mesh of ", data, " (data) x ", pipeline, " (pipeline) x ", tensor, " (tensor) has ", size(),
                             " ranks, but the world has ", world, "; each axis is at least 1, and their product is the size of the world")};
  }
};

static_assert(Mesh{2, 3, 4}.size() == 24 && Mesh{2, 3, 4}.coordinates(23).pipeline == 2);

}  // namespace pdp::strategy
