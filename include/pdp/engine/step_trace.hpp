#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>

namespace pdp::engine {

/// Measures the time of a step on this rank.
class StepClock {
 public:
  void start();
  /// Returns the time since start().
  [[nodiscard]] double seconds() const;

 private:
  std::int64_t begin_ = 0;  // nanoseconds of a steady clock
};

/// The times of a step's instructions on this rank, if steps are traced.
class StepTrace {
 public:
  /// Turns tracing on or off. `instructions`: number of instructions of a step.
  void trace(bool on, std::size_t instructions);
  [[nodiscard]] bool is_on() const { return is_on_; }
  /// Returns the times of the last traced step.
  [[nodiscard]] std::span<const Timed> times() const { return times_; }

  /// begin() without arguments begins a step; its times are measured from this moment. begin(at) records the begin of an instruction.
  void begin() { origin_.start(); }
  void begin(std::size_t at) { times_[at].begin = now(); }
  /// Records the end of an instruction. `count`: number of instructions that were executed together. All but the first begin and end when
  /// the first ends.
  void end(std::size_t at, std::size_t count);

 private:
  [[nodiscard]] double now() const { return origin_.seconds(); }

  bool is_on_ = false;
  std::vector<Timed> times_;
  StepClock origin_;
};

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/step_trace.hpp>
#endif
