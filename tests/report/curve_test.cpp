#include <pdp/report/curve.hpp>
#include <pdp/report/sample.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

using pdp::report::Curve;
using pdp::report::Sample;

namespace curve_test {

TEST_CASE("Curve keeps every value of a short course", "[report]") {
  Curve curve{8};
  CHECK(curve.empty());
  CHECK(std::isnan(curve.low()));
  CHECK(std::isnan(curve.last()));
  for (int step = 0; step < 8; ++step) curve.add(100 + step, step * 0.5);
  REQUIRE(curve.buckets().size() == 8);
  for (std::size_t at = 0; at < 8; ++at) {
    const Curve::Bucket& bucket = curve.buckets()[at];
    CHECK(bucket.first == 100 + static_cast<std::int64_t>(at));
    CHECK(bucket.last == bucket.first);
    CHECK(bucket.mean == 0.5 * static_cast<double>(at));
    CHECK(bucket.low == bucket.mean);
    CHECK(bucket.high == bucket.mean);
  }
  CHECK(curve.last() == 3.5);
}

TEST_CASE("Curve keeps the minimum, the maximum and the mean of any course in bounded memory", "[report]") {
  std::mt19937 random{random_seed()};
  const int steps = GENERATE(1, 2, 3, 9, 10, 11, 100, 1000, 4097);
  const auto most = static_cast<std::size_t>(GENERATE(1, 2, 3, 10, 64));
  std::normal_distribution<double> normal{0, 100};
  Curve curve{most};
  const Curve::Bucket* const memory = curve.buckets().data();
  std::vector<double> values;
  std::int64_t not_finite = 0, first_not_finite = -1;
  for (int step = 0; step < steps; ++step) {
    const auto kind = random() % 20;
    values.push_back(kind == 0 ? std::numeric_limits<double>::quiet_NaN() : kind == 1 ? -INFINITY : normal(random));
    if (kind < 2 && not_finite++ == 0) first_not_finite = 3 * step;
    curve.add(3 * step, values.back());
  }
  CAPTURE(steps, most);
  CHECK(curve.buckets().data() == memory);  // so nothing was allocated
  CHECK(curve.not_finite() == not_finite);
  CHECK(curve.first_not_finite() == first_not_finite);
  const auto& buckets = curve.buckets();
  CHECK(buckets.size() <= most + most % 2);
  if (steps >= static_cast<int>(most)) CHECK(2 * buckets.size() >= most);
  std::size_t at = 0;
  for (const Curve::Bucket& bucket : buckets) {  // the buckets divide the steps without gaps
    CHECK(bucket.first == 3 * static_cast<std::int64_t>(at));
    double low = INFINITY, high = -INFINITY, sum = 0;
    std::int64_t count = 0, others = 0;
    for (; at < values.size() && 3 * static_cast<std::int64_t>(at) <= bucket.last; ++at) {
      if (!std::isfinite(values[at])) {
        ++others;
        continue;
      }
      low = std::min(low, values[at]);
      high = std::max(high, values[at]);
      sum += values[at];
      ++count;
    }
    CHECK(bucket.values == count);
    CHECK(bucket.not_finite == others);
    if (count == 0) continue;
    CHECK(bucket.low == low);
    CHECK(bucket.high == high);
    CHECK_THAT(bucket.mean, WithinAbs(sum / static_cast<double>(count), 1e-9));
  }
  CHECK(at == values.size());
}

TEST_CASE("Curve has finite means of values near the largest number", "[report]") {
  constexpr double large = std::numeric_limits<double>::max();
  Curve curve{2};
  for (int step = 0; step < 100; ++step) curve.add(step, step % 2 == 0 ? large : -large);
  for (const Curve::Bucket& bucket : curve.buckets()) {
    CHECK(bucket.low == -large);
    CHECK(bucket.high == large);
    CHECK(std::isfinite(bucket.mean));
  }
}

TEST_CASE("Sample keeps all of a few numbers and a fair part of many", "[report]") {
  Sample sample{1000};
  for (int number = 0; number < 1000; ++number) sample.add(999 - number);
  sample.add(NAN);
  CHECK(sample.count() == 1000);
  const auto few = sample.sorted();
  REQUIRE(few.size() == 1000);
  for (std::size_t at = 0; at < few.size(); ++at) CHECK(few[at] == static_cast<double>(at));
  CHECK(pdp::report::quantile(few, 0) == 0);
  CHECK(pdp::report::quantile(few, 1) == 999);

  sample.clear();
  CHECK(sample.count() == 0);
  for (int number = 0; number < 1'000'000; ++number) sample.add(number);
  const auto some = sample.sorted();
  CHECK(some.size() == 1000);
  CHECK(sample.count() == 1'000'000);
  CHECK(sample.low() == 0);
  CHECK(sample.high() == 999'999);
  CHECK_THAT(sample.mean(), WithinAbs(499'999.5, 1e-3));
  for (const double part : {0.1, 0.5, 0.9}) CHECK_THAT(pdp::report::quantile(some, part), WithinAbs(1e6 * part, 6e4));
  CHECK(pdp::report::quantile({}, 0.5) == 0);
}

}  // namespace curve_test
