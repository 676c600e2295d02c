#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/engine/timeline.hpp>

namespace pdp::engine {

/// The times of a step's instructions on this rank, where a step is traced.
class StepTrace {
 public:
  /// Whether steps, of so many instructions, are traced from now on.
  void trace(bool on, std::size_t instructions) {
    is_on_ = on && instructions > 0;
    if (on) times_.assign(instructions, {});
  }
  [[nodiscard]] bool is_on() const { return is_on_; }
  /// Of the last step that was traced.
  [[nodiscard]] std::span<const Timed> times() const { return times_; }

  /// Times count from now on.
  void begin() { origin_ = Clock::now(); }
  void begin(std::size_t at) { times_[at].begin = now(); }
  /// `count`: instructions that are carried out together. Those after the first are part of it.
  void end(std::size_t at, std::size_t count) {
    times_[at].end = now();
    for (std::size_t other = at + 1; other < at + count; ++other) times_[other] = {times_[at].end, times_[at].end};
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double now() const { return std::chrono::duration<double>(Clock::now() - origin_).count(); }

  bool is_on_ = false;
  std::vector<Timed> times_;
  Clock::time_point origin_{};
};

}  // namespace pdp::engine
