#include <pdp/core/number_view.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <vector>

#include "catch.hpp"

namespace number_view_test {

using pdp::NumberView;

static_assert(std::is_trivially_copyable_v<NumberView<float>>);
static_assert(!std::convertible_to<std::vector<std::int32_t>, NumberView<float>>);
static_assert(!std::convertible_to<float, NumberView<float>>);

namespace {

/// Returns how many values are of type T, and how many of the other type.
std::array<std::size_t, 2> counts(NumberView<double> view) { return {view.same().size(), view.other().size()}; }

}  // namespace

TEST_CASE("NumberView takes floats and doubles in spans, vectors, arrays and by pointer, and nothing as an empty span", "[core]") {
  using Counts = std::array<std::size_t, 2>;
  const std::vector<double> doubles{1, 2, 3};
  std::vector<float> floats{1, 2};
  const std::array<float, 4> array{};
  const double raw[]{1, 2, 3, 4, 5};
  CHECK(counts(doubles) == Counts{3, 0});
  CHECK(counts(floats) == Counts{0, 2});
  CHECK(counts(std::span{floats}.first(1)) == Counts{0, 1});
  CHECK(counts(std::vector<double>{1}) == Counts{1, 0});
  CHECK(counts(array) == Counts{0, 4});
  CHECK(counts(raw) == Counts{5, 0});
  CHECK(counts({doubles.data(), 2}) == Counts{2, 0});
  CHECK(counts({floats.data(), 1}) == Counts{0, 1});
  CHECK(counts({}) == Counts{0, 0});
}

TEST_CASE("NumberView borrows the values, also in parts", "[core]") {
  const std::vector<double> doubles{1, 2, 3, 4};
  const std::vector<float> floats{1, 2, 3};
  const NumberView<float> same{floats}, other{doubles};
  CHECK(same.size() == 3);
  CHECK(other.size() == 4);
  CHECK(same.part(1, 2).same().data() == floats.data() + 1);
  CHECK(same.part(1, 2).size() == 2);
  CHECK(other.part(3, 1).other().data() == doubles.data() + 3);
  CHECK(other.part(4, 0).size() == 0);
  CHECK(NumberView<float>{}.part(0, 0).size() == 0);
}

}  // namespace number_view_test
