#pragma once

#include <array>
#include <cstdint>

namespace pdp::plan {

enum class Fault : std::uint8_t { none, deadlock, order, mismatch, forgotten };

/// What verify() found. A literal, so that it can stand in a static_assert; explain() says it in words.
struct Verdict {
  struct Stuck {
    int rank = -1;
    int at = -1;         // instruction of the rank's list
    int waits_for = -1;  // another rank
  };
  Fault fault = Fault::none;
  const char* reason = "";
  const char* list = "";  // of the plan: setup, step or evaluate; units, where one is not as it can be; or plan, where that is not
  Stuck where{};
  std::array<Stuck, 8> cycle{};  // of a deadlock: each waits for the next, the last one for the first
  int cycle_length = 0;
  int peak_micro_batches = 0;  // the most on any rank whose activations are held at once

  constexpr explicit operator bool() const { return fault == Fault::none; }
};

}  // namespace pdp::plan
