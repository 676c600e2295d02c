#include <pdp/core/converted.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <pdp/core/finite.hpp>

#include "catch.hpp"

namespace converted_test {

using pdp::detail::Converted;

TEST_CASE("Converted returns values of its own type as they were given", "[train]") {
  const std::vector<float> x{1, 2};
  const std::vector<std::int32_t> classes{3, 4, 5};
  Converted<float> floats{100};
  Converted<std::int32_t> integers{100};
  CHECK(floats(x).data() == x.data());
  CHECK(floats({}).empty());
  CHECK(integers(classes).data() == classes.data());
}

TEST_CASE("Converted copies values of the other type to memory that it allocates once", "[train]") {
  const std::vector<float> x{1, 0.1f, -3};
  Converted<double> doubles{3};
  const auto first = doubles(std::span{x}.first(1));
  CHECK(first.size() == 1);
  const auto all = doubles(x);
  CHECK(all.data() == first.data());
  CHECK(std::vector<double>(all.begin(), all.end()) == std::vector<double>{1, double{0.1f}, -3});
  CHECK(doubles(std::vector<float>(7, 2)).size() == 7);
}

TEST_CASE("Converted rounds doubles to the nearest floats and keeps NaN and infinity", "[train]") {
  const std::vector<double> x{0.1, 1 + 1e-9, std::numeric_limits<double>::infinity(), pdp::not_a_number<double>()};
  Converted<float> floats{4};
  const auto found = floats(x);
  CHECK(found[0] == 0.1f);
  CHECK(found[1] == 1);
  CHECK(pdp::is_infinite(found[2]));
  CHECK(pdp::is_nan(found[3]));
}

}  // namespace converted_test
