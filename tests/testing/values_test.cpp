#include <pdp/testing/values.hpp>

#include <array>
#include <limits>

#include "catch.hpp"

namespace testing = pdp::testing;

TEST_CASE("normal returns equal numbers for equal seeds and different ones for different seeds", "[testing]") {
  CHECK(testing::normal(100, 1) == testing::normal(100, 1));
  CHECK(testing::normal(100, 1) != testing::normal(100, 2));
  CHECK(testing::normal<double>(3, 5u).size() == 3);
  CHECK(testing::normal(0, 1).empty());
}

TEST_CASE("serial_sum adds up the values that normal returns for each rank", "[testing]") {
  const auto sum = testing::serial_sum(3, 10);
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(sum[i] == Approx(testing::normal(10, 0)[i] + testing::normal(10, 1)[i] + testing::normal(10, 2)[i]));
}

TEST_CASE("same_bits treats equal NaNs as equal and -0 as different from 0", "[testing]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(testing::same_bits(std::vector{1.f, nan}, std::array{1.f, nan}));
  CHECK_FALSE(testing::same_bits(std::vector{0.f}, std::vector{-0.f}));
  CHECK_FALSE(testing::same_bits(std::vector{1.f}, std::vector{1.f, 2.f}));
  CHECK(testing::same_bits(std::vector<int>{}, std::vector<int>{}));
}

TEST_CASE("relative_difference returns the largest difference divided by the largest magnitude", "[testing]") {
  using Doubles = std::vector<double>;
  CHECK(testing::relative_difference(std::vector{1.f, 2.f}, Doubles{1, 2}) == 0);
  CHECK(testing::relative_difference(Doubles{1, 9, -10}, Doubles{1, 10, -10}) == Approx(0.1));
  CHECK(testing::relative_difference(Doubles{}, Doubles{}) == 0);
  CHECK(testing::relative_difference(Doubles{0}, Doubles{0}) == 0);
  CHECK(std::isinf(testing::relative_difference(Doubles{1e-30}, Doubles{0})));
  CHECK(std::isinf(testing::relative_difference(Doubles{1}, Doubles{1, 2})));
  CHECK(std::isinf(testing::relative_difference(Doubles{std::nan("")}, Doubles{1})));
  CHECK(std::isinf(testing::relative_difference(Doubles{INFINITY}, Doubles{1})));
}
