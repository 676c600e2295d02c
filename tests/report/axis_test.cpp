#include <pdp/report/axis.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"

using pdp::report::Axis;
using pdp::report::axis_of;

namespace axis_test {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> found;
  for (const Axis::Tick& tick : axis.ticks) found.push_back(tick.label);
  return found;
}

TEST_CASE("axis_of puts ticks at round numbers", "[report]") {
  using Labels = std::vector<std::string>;
  CHECK(labels(axis_of(0, 1, {})) == Labels{"0", "0.5", "1.0"});
  CHECK(labels(axis_of(0, 35, {.is_whole = true, .has_margin = false})) == Labels{"0", "10", "20", "30"});
  CHECK(labels(axis_of(0, 100'000, {.is_whole = true, .has_margin = false})) == Labels{"0", "20k", "40k", "60k", "80k", "100k"});
  CHECK(labels(axis_of(0.001, 0.001, {})) == Labels{"0.00090", "0.00095", "0.00100", "0.00105", "0.00110"});
  CHECK(labels(axis_of(1e-4, 10, {.may_be_logarithmic = true})) == Labels{"0.001", "0.1", "10"});
  CHECK(labels(axis_of(0.02, 1.2, {.may_be_logarithmic = true})) == Labels{"0.03", "0.1", "0.3", "1"});
  CHECK(labels(axis_of(300, 30'000, {.may_be_logarithmic = true})) == Labels{"300", "1000", "3000", "10k", "30k"});
  CHECK(labels(axis_of(7, 7, {.is_whole = true})) == Labels{"7"});
}

TEST_CASE("axis_of has an ordered range with all values and few distinct ticks for any values", "[report]") {
  std::mt19937 random{random_seed()};
  const auto any = [&]() -> double {
    const double size = std::pow(10, static_cast<double>(random() % 600) - 300);
    switch (random() % 8) {
      case 0:
        return 0;
      case 1:
        return std::numeric_limits<double>::quiet_NaN();
      case 2:
        return random() % 2 == 0 ? INFINITY : -INFINITY;
      case 3:
        return static_cast<double>(random() % 1000);
      case 4:
        return -size;
      default:
        return size * static_cast<double>(random() % 1000);
    }
  };
  for (int trial = 0; trial < 5000; ++trial) {
    const double low = any(), high = any();
    const bool coins[]{random() % 2 == 0, random() % 2 == 0, random() % 2 == 0};
    const Axis axis = axis_of(low, high, {.may_be_logarithmic = coins[0], .from_zero = coins[1], .has_margin = coins[2]});
    CAPTURE(low, high, coins[0], coins[1], coins[2], axis.low, axis.high);
    CHECK(axis.low < axis.high);
    CHECK(axis.ticks.size() <= 7);
    double before = -INFINITY;
    for (const Axis::Tick& tick : axis.ticks) {
      CHECK(tick.value > before);
      CHECK(axis.place(tick.value) >= -1e-6);
      CHECK(axis.place(tick.value) <= 1 + 1e-6);
      before = tick.value;
    }
    for (const double value : {low, high}) {
      if (!(std::abs(low) < 1e300) || !(std::abs(high) < 1e300) || low > high) continue;
      CHECK(axis.place(value) >= -1e-6);
      CHECK(axis.place(value) <= 1 + 1e-6);
    }
  }
}

}  // namespace axis_test
