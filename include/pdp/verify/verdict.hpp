#pragma once

#include <array>
#include <cstdint>

#include <pdp/core/requirements.hpp>

namespace pdp::plan {

/// The kinds of fault that verify() finds: ranks that wait for each other; an instruction, a unit or a plan that is not valid; collectives
/// that differ between ranks; work that a list leaves unfinished.
enum class Fault : std::uint8_t { none, deadlock, order, mismatch, forgotten };

/// The result of verify(). A literal type, so that it can stand in a static_assert; explain() puts it in words.
struct Verdict {
  struct Stuck {
    int rank = -1;
    int at = -1;         // index of an instruction in the rank's list, or of a unit; -1: none
    int waits_for = -1;  // another rank; -1: none
  };
  Fault fault = Fault::none;
  const char* reason = "";
  /// The list with the fault: "setup", "step" or "evaluate". "units": a unit is invalid. "plan": another part of the plan is invalid.
  const char* list = "";
  Stuck where{};
  std::array<Stuck, 8> cycle{};  // of a deadlock: each rank waits for the next, the last one for the first
  int cycle_length = 0;
  int peak_micro_batches = 0;  // maximum over all ranks of micro-batches whose activations are held at once

  constexpr explicit operator bool() const { return fault == Fault::none; }
};

}  // namespace pdp::plan
