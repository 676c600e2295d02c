#include <pdp/data/in_memory.hpp>

#include <array>

#include "catch.hpp"
#include "data/files.hpp"

namespace data = pdp::data;
using pdp::Index;
using pdp::Shape;

TEST_CASE("InMemory gathers rows in the requested order, with repeats", "[data]") {
  const data::InMemory set{Shape{2}, std::vector<float>{0, 1, 10, 11, 20, 21}, std::vector<std::int32_t>{5, 6, 7}};
  CHECK(set.size() == 3);
  CHECK(set.sample_shape() == Shape{2});
  CHECK(set.target_shape() == Shape{1});

  std::vector<float> x(6);
  std::vector<std::int32_t> y(3);
  set.gather(std::array<Index, 3>{2, 0, 2}, x, y);
  CHECK(x == std::vector<float>{20, 21, 0, 1, 20, 21});
  CHECK(y == std::vector<std::int32_t>{7, 5, 7});
  set.gather({}, {}, {});
}

TEST_CASE("InMemory accepts vectors as targets and samples of several extents", "[data]") {
  std::vector<float> values(2 * 2 * 3), targets{1, 2, 3, 4};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const data::InMemory set{Shape{2, 3}, values, targets, Shape{2}};
  CHECK(set.size() == 2);

  std::vector<float> x(6), y(2);
  set.gather(std::array<Index, 1>{1}, x, y);
  CHECK(x == std::vector<float>{6, 7, 8, 9, 10, 11});
  CHECK(y == std::vector<float>{3, 4});
}

TEST_CASE("A copy of InMemory stays valid after the original is destroyed", "[data]") {
  std::optional<data::InMemory<float>> set{std::in_place, Shape{1}, std::vector<float>{1, 2}, std::vector<float>{3, 4}};
  const auto copy = *set;
  set.reset();
  std::vector<float> x(1), y(1);
  copy.gather(std::array<Index, 1>{1}, x, y);
  CHECK((x[0] == 2 && y[0] == 4));
}

TEST_CASE("InMemory rejects data that does not fit its shapes, and says which", "[data]") {
  using Floats = std::vector<float>;
  const auto make = [](Shape shape, std::size_t values, std::size_t targets, Shape target_shape = Shape{1}) {
    return files::message_of<pdp::ShapeError>([&] { data::InMemory{shape, Floats(values), Floats(targets), target_shape}; });
  };
  CHECK(!make(Shape{3}, 9, 3));
  CHECK(!make(Shape{3}, 0, 0));
  CHECK_THAT(make(Shape{3}, 10, 3).value(), Contains("x holds 10 values") && Contains("multiple of the 3"));
  CHECK_THAT(make(Shape{3}, 9, 4).value(), Contains("y holds 4 values, expected 3"));
  CHECK_THAT(make(Shape{3}, 9, 3, Shape{2}).value(), Contains("y holds 3 values, expected 6"));
  CHECK_THAT(make(Shape{3, 0}, 9, 3).value(), Contains("sample_shape") && Contains("[3, 0]"));
  CHECK_THAT(make(Shape{3}, 9, 3, Shape{-1}).value(), Contains("target_shape") && Contains("[-1]"));
  CHECK_THAT(make(Shape{}, 9, 3).value(), Contains("sample_shape") && Contains("found none"));
}
