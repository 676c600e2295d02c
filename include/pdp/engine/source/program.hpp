#pragma once

/// Definitions for pdp/engine/program.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/program.hpp>
#include <pdp/plan/effects.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::engine {

PDP_INLINE Program program_of(const plan::Instructions& list, const std::vector<int>& group_sizes) {
  Program made{.list = &list};
  std::vector<plan::Instruction> starts;
  for (const plan::Instruction& i : list) {
    const plan::Instruction start = start_of(i);
    const auto message = as_size(std::ranges::find(starts, start) - starts.begin());
    if (plan::moves_boundary(i.op) && message == starts.size()) {
      if (start != i) throw PlanError{text(describe(i), ": nothing in the plan has started it")};
      starts.push_back(start);
    }
    made.message_of.push_back(message);
  }
  made.message_count = starts.size();
  made.has_calls =
      std::ranges::any_of(list, [&](const plan::Instruction& i) { return plan::is_call(i.op) && group_sizes[as_size(i.group)] > 1; });
  for (std::size_t at = 0; at < list.size(); ++at) made.joined_count.push_back(plan::joined(list, at));
  return made;
}

PDP_INLINE bool reads_samples(const plan::Instructions& list) {
  return std::ranges::any_of(list, [](const plan::Instruction& i) { return i.op == plan::Op::forward && i.first == 0 && i.last > 0; });
}

PDP_INLINE void check_totals(const plan::Instructions& step) {
  if (std::ranges::none_of(step, [](const plan::Instruction& i) { return i.op == plan::Op::totals_wait && i.group == 0; }))
    throw PlanError{
        "stopping at a loss that is not finite needs the totals of each step on all ranks, which the plan does not compute; add "
        "totals_start and totals_wait, or train with NonFinite::ignore"};
}

PDP_INLINE bool computes_loss(const plan::Instructions& list) {
  return std::ranges::any_of(list, [](const plan::Instruction& i) { return i.op == plan::Op::loss; });
}

PDP_INLINE bool takes_norm(const plan::Instructions& list) {
  return std::ranges::any_of(list, [](const plan::Instruction& i) { return i.op == plan::Op::norm_start; });
}

PDP_INLINE void ranks_are_at_different_units(const plan::Instruction& i) {
  throw PlanError{text(describe(i), ": the ranks of the group are at different units, or order them differently; order the units ",
                       "and their collectives in the same way on all ranks")};
}

PDP_INLINE void the_plan_does_not_add_up_tied_gradients() {
  throw PlanError{
      "two layers of the model share a parameter, but the plan does not add up their gradients; make the plan with with_ties(model, plan, "
      "at)"};
}

}  // namespace pdp::engine
