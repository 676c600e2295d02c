#pragma once

#include <utility>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Returns the begin and the end of the part of `elements` values of a parameter in a unit that this rank saves. Ranks that update the same
/// values divide them evenly, so over all ranks each value is saved once. The copy of a tied layer is not saved.
template <comm::Communicator C>
[[nodiscard]] std::pair<Index, Index> owned_range(const Groups<C>& groups, const plan::Plan& plan, int unit, const nn::Parameter& parameter,
                                                  Index elements) {
  if (parameter.is_copy) return {0, 0};
  Index begin = 0, end = elements;
  const auto take = [&](int index, int count) {
    const Index first = begin, all = end - begin;
    begin = first + all * index / count;
    end = first + all * (index + 1) / count;
  };
  const plan::Unit& of = plan.units[as_size(unit)];
  if (of.sharding == plan::Sharding::none && of.group >= 0) take(groups[of.group].rank(), groups[of.group].size());
  if (!parameter.is_divided()) take(plan.tensor.index, plan.tensor.count);
  return {begin, end};
}

}  // namespace pdp::engine
