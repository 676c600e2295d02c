#pragma once

#include <array>
#include <cstdint>

namespace pdp::plan {

enum class Fault : std::uint8_t { none, deadlock, order, mismatch, forgotten };

/// The result of verify(). A literal type, so that it can stand in a static_assert; explain() puts it in words.
struct Verdict {
  struct Stuck {
    int rank = -1;
    int at = -1;         // index of an instruction in the rank's list
    int waits_for = -1;  // another rank; -1: none
  };
  Fault fault = Fault::none;
  const char* reason = "";
  const char* list = "";  // of the plan: setup, step or evaluate; units if a unit is invalid; plan if the plan itself is
  Stuck where{};
  std::array<Stuck, 8> cycle{};  // of a deadlock: each rank waits for the next, the last one for the first
  int cycle_length = 0;
  int peak_micro_batches = 0;  // maximum over all ranks of micro-batches whose activations are held at once

  constexpr explicit operator bool() const { return fault == Fault::none; }
};

}  // namespace pdp::plan
