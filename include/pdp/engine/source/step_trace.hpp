#pragma once

/// Definitions for pdp/engine/step_trace.hpp; see pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/step_trace.hpp>

namespace pdp::engine {

namespace detail {

PDP_INLINE std::chrono::nanoseconds time_of_steps() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace detail

PDP_INLINE void StepClock::start() { begin_ = detail::time_of_steps().count(); }

PDP_INLINE double StepClock::seconds() const {
  return std::chrono::duration<double>(detail::time_of_steps() - std::chrono::nanoseconds{begin_}).count();
}

PDP_INLINE void StepTrace::trace(bool on, std::size_t instructions) {
  is_on_ = on && instructions > 0;
  if (on) times_.assign(instructions, {});
}

PDP_INLINE void StepTrace::end(std::size_t at, std::size_t count) {
  times_[at].end = now();
  for (std::size_t other = at + 1; other < at + count; ++other) times_[other] = {times_[at].end, times_[at].end};
}

}  // namespace pdp::engine
