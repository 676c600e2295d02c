#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <pdp/comm/message/together/meeting.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/shm/memory.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::shm {

/// Memory of equal size on each rank of a group. Each of these ranks maps the memory of all.
class Arena {
 public:
  /// `number`: identifies the arena; not zero, and the same on all ranks of the group. `ranks`: the world ranks of the group. `memories`:
  /// one for each rank, in the order of the group. `rank`: this rank in the group.
  Arena(std::uint64_t number, std::vector<int> ranks, int rank, std::vector<Memory> memories)
      : number_{number}, ranks_{std::move(ranks)}, memories_{std::move(memories)}, rank_{rank} {}

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const Memory& own() const { return memories_[as_size(rank_)]; }
  /// Returns the memory of each rank of the group.
  [[nodiscard]] std::vector<std::byte*> parts() const {
    std::vector<std::byte*> parts;
    for (const Memory& each : memories_) parts.push_back(each.data());
    return parts;
  }
  /// Returns whether the values lie in this rank's memory.
  [[nodiscard]] bool holds(const std::byte* values, std::size_t bytes) const {
    return values >= own().data() && values + bytes <= own().data() + own().size();
  }
  /// Returns the memory of a world rank, which must be in the group.
  [[nodiscard]] std::byte* of(int world_rank) const {
    return memories_[as_size(std::ranges::find(ranks_, world_rank) - ranks_.begin())].data();
  }

 private:
  std::uint64_t number_;
  std::vector<int> ranks_;
  std::vector<Memory> memories_;
  int rank_;
};

/// A list of the arenas of one rank. The user's Regions own the arenas.
class Arenas {
 public:
  /// Adds an arena, and returns this rank's memory in it. The arena is destroyed and removed from the list when the returned Region is
  /// destroyed.
  Region add(Arena made) {
    const std::shared_ptr<Arena> arena{new Arena{std::move(made)}, [list = list_](Arena* gone) {
                                         std::erase(*list, gone);
                                         delete gone;
                                       }};
    list_->push_back(arena.get());
    return {arena->own().data(), arena->own().size(), arena, arena->parts()};
  }

  // Required by together::Sources.
  [[nodiscard]] together::Source find(const std::byte* values, std::size_t bytes) const {
    for (const Arena* each : *list_)
      if (each->holds(values, bytes)) return {each->number(), static_cast<std::uint64_t>(values - each->own().data())};
    return {};
  }
  [[nodiscard]] std::byte* at(const together::Source& source, int world_rank) const {
    const auto is_it = [&source](const Arena* each) { return each->number() == source.memory; };
    return (*std::ranges::find_if(*list_, is_it))->of(world_rank) + source.offset;
  }

 private:
  std::shared_ptr<std::vector<Arena*>> list_ = std::make_shared<std::vector<Arena*>>();
};

static_assert(together::Sources<Arenas>);

}  // namespace pdp::comm::shm
