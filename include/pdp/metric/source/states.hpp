#pragma once

/// Definitions for pdp/metric/states.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/metric/states.hpp>

namespace pdp::metric {

PDP_INLINE States::States(std::span<const Any> metrics, Index outputs) : metrics_{metrics} {
  for (const Any& each : metrics) {
    begins_.push_back(states_.size());
    states_.resize(states_.size() + each.state_size(outputs));
  }
  begins_.push_back(states_.size());
}

PDP_INLINE void States::set_all(std::span<const double> all) {
  const std::size_t size = states_.size();
  states_.assign(all.begin(), all.begin() + as_index(size));
  for (std::size_t from = size; from < all.size(); from += size)
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      metrics_[i].merge(state(i), all.subspan(from + begins_[i], begins_[i + 1] - begins_[i]));
}

PDP_INLINE std::vector<Result> States::results() {
  std::vector<Result> found;
  for (std::size_t i = 0; i < metrics_.size(); ++i) found.push_back(metrics_[i].result(state(i)));
  return found;
}

}  // namespace pdp::metric
