#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::plan::detail {

/// The groups of all ranks: the results of plan::members, computed once.
class GroupTable {
 public:
  explicit constexpr GroupTable(const std::vector<Plan>& plans) : groups_(plans.size()), world_{plans.size()} {
    const int ranks = as_int(plans.size());
    std::size_t most = 0;
    for (const Plan& plan : plans) most = std::max(most, plan.groups.size());
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(rank);
    for (auto& groups : groups_) groups.resize(most);
    for (std::size_t number = 0; number < most; ++number) {
      std::vector<std::array<int, 3>> found;  // color, key, rank
      for (int rank = 0; rank < ranks; ++rank)
        if (const auto& groups = plans[as_size(rank)].groups; number < groups.size())
          found.push_back({groups[number].color, groups[number].key, rank});
      std::sort(found.begin(), found.end());
      for (std::size_t begin = 0, end = 0; begin < found.size(); begin = end) {
        const std::size_t offset = ranks_.size();
        for (; end < found.size() && found[end][0] == found[begin][0]; ++end) ranks_.push_back(found[end][2]);
        for (std::size_t each = begin; each < end; ++each) groups_[as_size(found[each][2])][number] = {offset, end - begin};
      }
    }
  }

  /// Returns the members of a group of `rank` as ranks of the world, in the order of the group.
  [[nodiscard]] constexpr std::span<const int> members(int rank, int group) const {
    const std::span<const int> all{ranks_};
    if (group == 0) return all.first(world_);
    const Place own = groups_[as_size(rank)][as_size(group) - 1];
    return all.subspan(own.begin, own.count);
  }

 private:
  struct Place {
    std::size_t begin = 0, count = 0;
  };
  std::vector<std::vector<Place>> groups_;  // [rank][group - 1]: the range of its members in `ranks_`
  std::size_t world_;
  std::vector<int> ranks_;  // all ranks of the world, then the ranks of each group
};

}  // namespace pdp::plan::detail
