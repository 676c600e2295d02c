#include <pdp/data/input.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/next_tokens.hpp>
#include <pdp/data/training_epoch.hpp>

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace next_tokens_test {

namespace data = pdp::data;
using pdp::Index, pdp::Shape;

namespace {

/// Token i of a sequence of `count` is i + 1.
template <class T>
std::vector<T> sequence(Index count) {
  std::vector<T> all;
  for (Index i = 1; i <= count; ++i) all.push_back(static_cast<T>(i));
  return all;
}
template <class T>
data::MappedRows rows(const std::vector<T>& values, data::ElementType type, Shape row = Shape{1}) {
  return data::map_raw(data::Input{std::as_bytes(std::span{values}), "tokens"}, {.type = type, .row = row});
}

}  // namespace

TEST_CASE("NextTokens has windows of a sequence, and the tokens one position later", "[data][tokens]") {
  const auto check = [](const auto& values, data::ElementType type) {
    const data::NextTokens set{rows(values, type), 3, {.first = 2, .end = 15}};
    REQUIRE(set.size() == 3);  // 13 tokens are 4 windows, and the last one has no room to move
    std::vector<std::int32_t> x(6), y(6);
    set.gather(std::array<Index, 2>{2, 0}, x, y);
    CHECK(x == std::vector<std::int32_t>{9, 10, 11, 3, 4, 5});
    CHECK(y == std::vector<std::int32_t>{10, 11, 12, 4, 5, 6});
  };
  check(sequence<std::uint8_t>(40), data::ElementType::U8);
  check(sequence<std::uint16_t>(40), data::ElementType::U16);
  check(sequence<std::int64_t>(40), data::ElementType::I64);
}

TEST_CASE("Windows of NextTokens move from epoch to epoch, all by the same number of tokens, and never leave the range", "[data][tokens]") {
  for (const Index positions : {1, 2, 5, 300})
    for (const Index count : {2 * positions, 3 * positions - 1, 3 * positions, 7 * positions + 1}) {
      const std::vector<std::int32_t> values = sequence<std::int32_t>(count + 2);
      const data::NextTokens set{rows(values, data::ElementType::I32), positions, {.first = 1, .end = 1 + count}};
      CAPTURE(positions, count);
      REQUIRE(set.size() >= 1);
      std::vector<Index> all;
      for (Index i = 0; i < set.size(); ++i) all.push_back(i);
      std::vector<std::int32_t> x(pdp::as_size(set.size() * positions)), y = x;
      std::set<std::int32_t> begins;
      for (Index epoch = 0; epoch < 30; ++epoch) {
        set.gather(all, x, y, data::TrainingEpoch{.seed = 4, .number = epoch});
        begins.insert(x.front());
        for (std::size_t i = 0; i < x.size(); ++i) {
          REQUIRE(x[i] == x.front() + static_cast<std::int32_t>(i));
          REQUIRE(y[i] == x[i] + 1);
        }
        REQUIRE(x.front() >= 2);
        REQUIRE(y.back() <= count + 1);
      }
      CHECK(*begins.begin() >= 2);
      CHECK(pdp::as_index(begins.size()) <= positions);
      CHECK(begins.size() > (positions == 1 ? 0U : 1U));
    }
}

TEST_CASE("NextTokens refuses ranges that are too short, and rows that are no tokens", "[data][tokens]") {
  const auto refused = [](auto&& make) { return files::message_of<pdp::Error>(make).value(); };
  const auto values = sequence<std::int32_t>(10);
  const auto tokens = rows(values, data::ElementType::I32);
  CHECK_THAT(refused([&] {
               data::NextTokens{tokens, 6};
             }),
             Contains("expected a range of at least 12 tokens, for windows of 6, found tokens 0 to 10 of tokens, which has 10"));
  CHECK_THAT(refused([&] { data::NextTokens{tokens, 3, {.first = 8}}; }), Contains("found tokens 8 to 10"));
  CHECK_THAT(refused([&] { data::NextTokens{tokens, 3, {.first = -1}}; }), Contains("found tokens -1 to 10"));
  CHECK_THAT(refused([&] { data::NextTokens{tokens, 0}; }), Contains("expected windows of 1 token or more, found 0"));
  CHECK_THAT(refused([&] {
               data::NextTokens{rows(values, data::ElementType::I32, Shape{2}), 2};
             }),
             Contains("expected one token in each row, found rows of shape [2]"));
  CHECK_THAT(refused([&] { data::NextTokens{rows(values, data::ElementType::F32), 2}; }), Contains("found F32"));
}

TEST_CASE("Mapped has samples of tokens", "[data][tokens]") {
  const std::vector<std::uint16_t> values{1, 2, 3, 4, 5, 65535};
  const auto tokens = rows(values, data::ElementType::U16, Shape{2});
  const data::Mapped<std::int32_t, std::int32_t> set{tokens, tokens};
  std::vector<std::int32_t> x(4), y(4);
  set.gather(std::array<Index, 2>{2, 0}, x, y);
  CHECK(x == std::vector<std::int32_t>{5, 65535, 1, 2});
  CHECK(y == x);
  const std::vector<float> numbers(6);
  const auto floats = rows(numbers, data::ElementType::F32, Shape{2});
  CHECK_THAT(files::message_of<pdp::FileError>([&] {
               data::Mapped<std::int32_t, std::int32_t>{floats, tokens};
             }).value(),
             Contains("expected class numbers or tokens of type I32, I64, U16 or U8, found F32"));
}

}  // namespace next_tokens_test
