#pragma once

#include <algorithm>

#include <pdp/core/requirements.hpp>

namespace pdp::plan::detail {

/// The simulated time of one rank in a rehearsal. Layers take the time that plan::cost() returns; messages take none.
class RehearsalClock {
 public:
  [[nodiscard]] constexpr double now() const { return now_; }
  /// Returns the time that the rank has spent computing.
  [[nodiscard]] constexpr double busy() const { return busy_; }

  constexpr void compute(double cost) {
    busy_ += cost;
    now_ += cost;
  }
  constexpr void wait_until(double time) { now_ = std::max(now_, time); }

 private:
  double now_ = 0, busy_ = 0;
};

}  // namespace pdp::plan::detail
