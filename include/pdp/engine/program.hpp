#pragma once

#include <cstddef>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::engine {

/// A list of instructions, which it borrows, as an engine goes through it.
struct Program {
  const plan::Instructions* list = nullptr;
  std::vector<std::size_t> message_of{};  // the place of the message that an instruction starts, or waits for; of others it says nothing
  std::size_t message_count = 0;
  std::vector<std::size_t> joined_count{};  // how many instructions are carried out together with each, itself included
  bool has_calls = false;                   // in which other ranks have a part
};

/// Returns the program of a list, which must outlive it. `group_sizes`: the ranks of each group that the list names. Throws PlanError if an
/// instruction waits for a message that nothing has started.
[[nodiscard]] Program program_of(const plan::Instructions& list, const std::vector<int>& group_sizes);

/// Whether a rank takes the loss of its rows in a list.
[[nodiscard]] bool computes_loss(const plan::Instructions& list);
/// Whether a list takes the norm of the gradient.
[[nodiscard]] bool takes_norm(const plan::Instructions& list);

/// Throws PlanError: ranks that share memory have waited for each other at different units, this rank at that of the instruction.
[[noreturn]] void ranks_are_at_different_units(const plan::Instruction& i);

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/program.hpp>
#endif
