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
  /// Traces steps of so many instructions from now on; 0: none.
  void trace(std::size_t instructions) { times_.resize(instructions); }
  [[nodiscard]] bool is_on() const { return !times_.empty(); }
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

  std::vector<Timed> times_;
  Clock::time_point origin_{};
};

}  // namespace pdp::engine
