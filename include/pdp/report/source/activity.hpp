#pragma once

/// Definitions for pdp/report/activity.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/operation.hpp>
#include <pdp/report/activity.hpp>

namespace pdp::report {

PDP_INLINE std::size_t activity_of(plan::Op op) {
  if (op == plan::Op::forward_to_pause) op = plan::Op::forward;
  if (op == plan::Op::backward_to_pause) op = plan::Op::backward_input;
  if (op == plan::Op::add_tied) op = plan::Op::update;
  const std::string_view wanted = !plan::is_call(op) ? name(op) : plan::is_start(op) ? "start" : "wait";
  const auto found = std::find_if(activities.begin(), activities.end(), [wanted](const Activity& each) { return each.name == wanted; });
  return as_size(found - activities.begin());
}

}  // namespace pdp::report
