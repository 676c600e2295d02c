#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>

namespace pdp::engine {

/// The times of a step's instructions on this rank, where a step is traced.
class StepTrace {
 public:
  /// Whether steps, of so many instructions, are traced from now on.
  void trace(bool on, std::size_t instructions);
  [[nodiscard]] bool is_on() const { return is_on_; }
  /// Of the last step that was traced.
  [[nodiscard]] std::span<const Timed> times() const { return times_; }

  /// Times count from now on.
  void begin();
  void begin(std::size_t at) { times_[at].begin = now(); }
  /// `count`: instructions that are carried out together. Those after the first are part of it.
  void end(std::size_t at, std::size_t count);

 private:
  [[nodiscard]] double now() const;

  bool is_on_ = false;
  std::vector<Timed> times_;
  std::int64_t origin_ = 0;  // in nanoseconds of a steady clock
};

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/step_trace.hpp>
#endif
