#pragma once

/// Definitions for pdp/engine/collect.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/plan/ties.hpp>

namespace pdp::engine {

PDP_INLINE Contributions::Contributions(const plan::Outline& model, const std::vector<plan::Plan>& plans, plan::Sharding sliced_from)
    : model_{model}, counts_(plans.size(), 0) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const plan::Layout layout = plan::layout(plans[rank], model);
    for (std::size_t u = 0; u < plans[rank].units.size(); ++u) {
      const plan::Unit& unit = plans[rank].units[u];
      if (plan::is_tied(model, unit) && unit.first > 0) continue;  // a copy
      const nn::Layout::Unit& lies = layout.units[u];
      const bool sliced = unit.sharding >= sliced_from;
      const Part part{as_int(rank),
                      as_int(u),
                      unit.first,
                      unit.last,
                      plans[rank].tensor.index,
                      sliced,
                      sliced ? lies.begin() : 0,
                      sliced ? lies.slice : lies.whole(),
                      elements_};
      const auto is_same = [&](const Part& other) {
        return other.first == part.first && other.last == part.last && other.part == part.part && other.begin == part.begin;
      };
      if (std::ranges::any_of(parts_, is_same)) continue;
      elements_ += part.elements;
      counts_[rank] += as_size(part.elements);
      parts_.push_back(part);
    }
  }
}

}  // namespace pdp::engine
