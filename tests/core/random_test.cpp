#include <pdp/core/philox.hpp>
#include <pdp/core/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "catch.hpp"

namespace random_ = pdp::random;
using pdp::Index;

TEST_CASE("random::bits returns the known answers that Random123 publishes for philox4x32-10", "[random]") {
  CHECK(random_::bits({0}, 0, 0) == random_::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(random_::bits({~0ull}, ~0ull, ~0ull) == random_::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(random_::bits({0x299f31d0'a4093822}, 0x85a308d3'243f6a88, 0x03707344'13198a2e) ==
        random_::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  static_assert(random_::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
                random_::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("make_key is constexpr and depends on the seed, on each part and on their order", "[random]") {
  static_assert(random_::make_key(1, "0.weight") == random_::make_key(1, "0.weight"));
  static_assert(random_::mix(0) == 0xe220a8397b1dcdaf, "splitmix64's first number for the state 0");
  static_assert(random_::hash("a") == 0xaf63dc4c8601ec8c, "FNV-1a's published value");

  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    keys.insert(random_::make_key(seed).value);
    keys.insert(random_::make_key(seed, "0.weight").value);
    keys.insert(random_::make_key(seed, "0.bias").value);
    keys.insert(random_::make_key(seed, "0.weight", 1, 2).value);
    keys.insert(random_::make_key(seed, "0.weight", 2, 1).value);
  }
  CHECK(keys.size() == 500);
}

TEST_CASE("random::uniform makes element i from the upper 24 bits of word i % 4 of block i / 4", "[random]") {
  const auto key = random_::make_key(7, "weights");
  for (const Index element : {0, 1, 2, 3, 4, 5, 1000, 1'000'003}) {
    const auto word = random_::bits(key, static_cast<std::uint64_t>(element) / 4)[static_cast<std::size_t>(element % 4)];
    CHECK(random_::uniform(key, element) == static_cast<float>(word >> 8) / 16777216.0f);
  }
}

TEMPLATE_TEST_CASE("fill_uniform and fill_normal equal draws of single elements, from any first element", "[random]", float, double) {
  const auto key = random_::make_key(3, "weights");
  const Index first = GENERATE(0, 1, 2, 3, 4, 1021, (Index{1} << 40) + 1);
  const std::size_t elements = GENERATE(as<std::size_t>{}, 0, 1, 2, 3, 5, 8, 1003);

  std::vector<TestType> uniform(elements), normal(elements), one_by_one, normal_one_by_one;
  random_::fill_uniform<TestType>(key, first, uniform);
  random_::fill_normal<TestType>(key, first, normal);
  for (std::size_t i = 0; i < elements; ++i) {
    one_by_one.push_back(random_::uniform<TestType>(key, first + static_cast<Index>(i)));
    normal_one_by_one.push_back(random_::normal<TestType>(key, first + static_cast<Index>(i)));
  }
  CHECK(uniform == one_by_one);
  CHECK(normal == normal_one_by_one);
}

TEMPLATE_TEST_CASE("fill_uniform draws evenly from the interval from 0 to below 1", "[random]", float, double) {
  constexpr std::size_t elements = 100'000;
  std::vector<TestType> values(elements);
  random_::fill_uniform<TestType>(random_::make_key(1, "test"), 0, values);
  CHECK(*std::ranges::min_element(values) >= 0);
  CHECK(*std::ranges::max_element(values) < 1);

  std::array<int, 10> tenths{};
  for (const TestType value : values) ++tenths[static_cast<std::size_t>(value * 10)];
  for (const int count : tenths) CHECK(std::abs(count - 10'000) < 500);  // five standard deviations of 95
}

TEST_CASE("uniform_in maps all-one bits to a number below 1 and all-zero bits to 0", "[random]") {
  constexpr random_::Block ones{~0u, ~0u, ~0u, ~0u};
  static_assert(random_::uniform_in<float>(ones, 3) == 1 - 0x1p-24f && random_::uniform_in<double>(ones, 1) == 1 - 0x1p-53);
  static_assert(random_::uniform_in<float>({}, 0) == 0 && random_::uniform_in<double>({}, 0) == 0);
}

TEST_CASE("fill_normal draws with mean 0 and deviation 1, and nothing above 6", "[random]") {
  std::vector<double> values(100'000);
  random_::fill_normal<double>(random_::make_key(1, "test"), 0, values);
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  CHECK(std::abs(sum / count) < 0.02);
  CHECK(std::abs(squares / count - 1) < 0.03);
  CHECK(std::ranges::max(values) < 6);
}

TEST_CASE("Stream::below returns every number below its bound equally often", "[random]") {
  const std::uint64_t bound = GENERATE(1u, 2u, 3u, 7u, 10u);
  random_::Stream stream{random_::make_key(5, "draws")};
  std::vector<int> counts(bound);
  constexpr int draws = 70'000;
  for (int i = 0; i < draws; ++i) ++counts.at(stream.below(bound));
  const double expected = static_cast<double>(draws) / static_cast<double>(bound);
  for (const int count : counts) CHECK(std::abs(count - expected) < 5 * std::sqrt(expected) + 1);
}

TEST_CASE("Stream::below is unbiased for a bound that does not divide 2^64", "[random]") {
  const std::uint64_t bound = 3ull << 62;  // with a plain remainder, half of the draws would lie in the lower third
  random_::Stream stream{random_::make_key(5, "draws")};
  int lower_third = 0;
  constexpr int draws = 10'000;
  for (int i = 0; i < draws; ++i) {
    const auto drawn = stream.below(bound);
    REQUIRE(drawn < bound);
    if (drawn < bound / 3) ++lower_third;
  }
  CHECK(std::abs(lower_third - draws / 3) < 300);
}

TEST_CASE("Stream::next returns the blocks of its key, 64 bits at a time", "[random]") {
  const auto key = random_::make_key(11, "draws");
  random_::Stream stream{key};
  for (std::uint64_t block = 0; block < 5; ++block) {
    const auto words = random_::bits(key, block);
    CHECK(stream.next() == (std::uint64_t{words[1]} << 32 | words[0]));
    CHECK(stream.next() == (std::uint64_t{words[3]} << 32 | words[2]));
  }
}
