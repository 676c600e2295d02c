#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/parallel/groups.hpp>
#include <pdp/parallel/instruction.hpp>
#include <pdp/parallel/strategy.hpp>

namespace pdp::parallel {

/// A list of instructions, which it borrows, as an engine goes through it.
struct Program {
  const Instructions* list = nullptr;
  std::vector<std::size_t> handles{};  // of each instruction that starts a message, or waits for one: the place of that message
  std::vector<std::size_t> joined{};   // how many instructions are carried out together with each, itself included
  std::size_t messages = 0;            // for how many there are places
  bool has_calls = false;              // in which other ranks have a part
};

/// The instruction that starts what this one starts or waits for.
constexpr Instruction start_of(Instruction i) {
  if (i.op == Op::send_wait) i.op = Op::send_start;
  if (i.op == Op::receive_wait) i.op = Op::receive_start;
  if (i.op == Op::sum_wait) i.op = Op::sum_start;
  return i;
}

/// Throws PlanError where an instruction waits for a message that nothing has started.
template <comm::Communicator C>
Program program_of(const Instructions& list, const Groups<C>& groups) {
  Program made{.list = &list};
  std::vector<Instruction> starts;
  for (const Instruction& i : list) {
    const Instruction start = start_of(i);
    const bool is_message = start.op == Op::send_start || start.op == Op::receive_start || start.op == Op::sum_start;
    const auto handle = static_cast<std::size_t>(std::ranges::find(starts, start) - starts.begin());
    if (is_message && handle == starts.size()) {
      if (start != i) throw PlanError{text(describe(i), ": nothing in the plan has started it")};
      starts.push_back(start);
    }
    made.handles.push_back(handle);
  }
  made.messages = starts.size();
  made.has_calls = std::ranges::any_of(list, [&](const Instruction& i) { return is_call(i.op) && groups[i.group].size() > 1; });
  for (std::size_t at = 0; at < list.size(); ++at) made.joined.push_back(joined(list, at));
  return made;
}

}  // namespace pdp::parallel
