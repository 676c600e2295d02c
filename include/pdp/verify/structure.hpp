#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>
#include <pdp/verify/group_table.hpp>
#include <pdp/verify/verdict.hpp>

namespace pdp::plan::detail {

/// Checks the parts of plans that are not instructions: the parts of divided layers, and the units.
class StructureCheck {
 public:
  constexpr StructureCheck(const Outline& model, const std::vector<Plan>& plans, const GroupTable& groups)
      : model_{model}, plans_{plans}, groups_{groups} {}

  [[nodiscard]] constexpr Verdict run() const {
    for (int rank = 0; rank < as_int(plans_.size()); ++rank)
      if (const char* reason = misplaced(rank); reason != nullptr) return {Fault::order, reason, "plan", {rank, -1, -1}};
    for (int rank = 0; rank < as_int(plans_.size()); ++rank)
      for (std::size_t u = 0; u < plan(rank).units.size(); ++u)
        if (const char* reason = malformed(rank, plan(rank).units[u]); reason != nullptr)
          return {Fault::order, reason, "units", {rank, as_int(u), -1}};
    return {};
  }

 private:
  [[nodiscard]] constexpr const Plan& plan(int rank) const { return plans_[as_size(rank)]; }

  /// Returns what is wrong with a rank's part of divided layers, or with the ranks that have the other parts. Returns null if nothing is
  /// wrong.
  [[nodiscard]] constexpr const char* misplaced(int rank) const {
    const Plan& own = plan(rank);
    if (own.groups.size() != plan(0).groups.size())
      return "has another number of groups than rank 0, but all ranks split the world together";
    if (own.tensor.count != model_.parts) return "divides the layers into another number of parts than the model";
    if (own.tensor_group < 0 || own.tensor_group > as_int(own.groups.size())) return "names a group that the plan does not have";
    if (model_.parts == 1) return nullptr;
    const std::span<const int> group = groups_.members(rank, own.tensor_group);
    for (std::size_t each = 0; each < group.size(); ++each)
      if (plan(group[each]).tensor != nn::Part{as_int(each), model_.parts} || as_int(group.size()) != model_.parts)
        return "has a tensor-parallel group that does not hold each part of the layers once, in their order";
    for (const int other : group)
      if (plan(other).share != own.share || plan(other).micro_batches != own.micro_batches)
        return "has a tensor-parallel group whose ranks do not take the same rows";
    return nullptr;
  }
  /// Returns whether the ranks of a unit's group take each share of the data once. Only then is the sum of their gradients the gradient of
  /// all rows.
  [[nodiscard]] constexpr bool takes_all_shares(int rank, const Unit& unit) const {
    const int shares = plan(rank).share.count;
    if (unit.group < 0) return shares == 1;
    std::vector<int> taken(as_size(shares), 0);
    for (const int other : groups_.members(rank, unit.group)) {
      const data::Shard share = plan(other).share;
      if (share.count != shares || share.index < 0 || share.index >= shares || taken[as_size(share.index)]++ > 0) return false;
    }
    return std::find(taken.begin(), taken.end(), 0) == taken.end();
  }
  /// Returns what is wrong with a unit by itself, or null.
  [[nodiscard]] constexpr const char* malformed(int rank, const Unit& unit) const {
    if (unit.first < 0 || unit.first >= unit.last || unit.last > model_.size()) return "holds layers that the model does not have";
    if (unit.group < -1 || unit.group > as_int(plan(rank).groups.size())) return "names a group that the plan does not have";
    for (const Unit& other : plan(rank).units)
      if (&other != &unit && other.first < unit.last && unit.first < other.last) return "shares a layer with another unit of the rank";
    if (is_tied_among_others(model_, unit)) return "holds a layer that shares its parameter with another one, and other parameters";
    if (!takes_all_shares(rank, unit)) return "is reduced over ranks that do not take each share of the data once";
    if (unit.sharding == Sharding::none) return unit.slices != 1 || unit.slice != 0 ? "has slices, although it is not sharded" : nullptr;
    if (unit.group < 0) return "is sharded, but held by this rank alone";
    const std::span<const int> group = groups_.members(rank, unit.group);
    if (unit.slices != as_int(group.size())) return "has another number of slices than its group has ranks";
    if (unit.slice < 0 || unit.slice >= unit.slices || group[as_size(unit.slice)] != rank)
      return "has a slice number that is not the rank's index in its group";
    return nullptr;
  }

  const Outline& model_;
  const std::vector<Plan>& plans_;
  const GroupTable& groups_;
};

}  // namespace pdp::plan::detail
