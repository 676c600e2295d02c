#pragma once

#include <cstddef>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/instruction.hpp>

namespace pdp::engine {

/// A list of instructions, prepared for an engine. Borrows the list.
struct Program {
  const plan::Instructions* list = nullptr;
  std::vector<std::size_t> message_of{};  // [instruction]: index of the message that it starts or waits for; no meaning for others
  std::size_t message_count = 0;
  std::vector<std::size_t> joined_count{};  // [instruction]: number of instructions, this one included, that are executed together
  bool has_calls = false;                   // other ranks take part
};

/// Returns the program of a list, which must outlive it. `group_sizes`: number of ranks of each group that the list names. Throws PlanError
/// if an instruction waits for a message that nothing has started.
[[nodiscard]] Program program_of(const plan::Instructions& list, const std::vector<int>& group_sizes);

/// Returns whether a rank computes the loss of its rows in a list.
[[nodiscard]] bool computes_loss(const plan::Instructions& list);
/// Returns whether a rank computes the first layer in a list.
[[nodiscard]] bool reads_samples(const plan::Instructions& list);
/// Throws PlanError if a step does not wait for the totals of all ranks. NonFinite::stop_on_loss needs them.
void check_totals(const plan::Instructions& step);
/// Returns whether a list takes the norm of the gradient.
[[nodiscard]] bool takes_norm(const plan::Instructions& list);

/// Throws PlanError: ranks that share memory are at different units in a rendezvous. `i`: the instruction of this rank.
[[noreturn]] void ranks_are_at_different_units(const plan::Instruction& i);

/// Throws PlanError: two layers of the model share a parameter, but the plan does not add up their gradients.
[[noreturn]] void the_plan_does_not_add_up_tied_gradients();

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/program.hpp>
#endif
