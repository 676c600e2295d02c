#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// A list of instructions, which it borrows, as an engine goes through it.
struct Program {
  const plan::Instructions* list = nullptr;
  std::vector<std::size_t> message_of{};  // the place of the message that an instruction starts, or waits for; of others it says nothing
  std::size_t message_count = 0;
  std::vector<std::size_t> joined_count{};  // how many instructions are carried out together with each, itself included
  bool has_calls = false;                   // in which other ranks have a part
};

/// It may not outlive the list. Throws PlanError where an instruction waits for a message that nothing has started.
template <comm::Communicator C>
Program program_of(const plan::Instructions& list, const Groups<C>& groups) {
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
  made.has_calls = std::ranges::any_of(list, [&](const plan::Instruction& i) { return plan::is_call(i.op) && groups[i.group].size() > 1; });
  for (std::size_t at = 0; at < list.size(); ++at) made.joined_count.push_back(plan::joined(list, at));
  return made;
}

}  // namespace pdp::engine
