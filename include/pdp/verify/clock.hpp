#pragma once

#include <algorithm>

namespace pdp::plan::detail {

/// The time of one rank in a rehearsal, in which layers take what cost() says and messages take no time.
class RehearsalClock {
 public:
  [[nodiscard]] constexpr double now() const { return now_; }
  /// The part of the time in which the rank computes.
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
