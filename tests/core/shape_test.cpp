#include <pdp/core/shape.hpp>

#include "catch.hpp"

using pdp::Shape;

TEST_CASE("Shape counts the values of a sample, also at compile time", "[core]") {
  static_assert(Shape{784}.elements() == 784 && Shape{784}.rank() == 1);
  static_assert(Shape{1, 28, 28}.elements() == 784 && Shape{1, 28, 28}.rank() == 3 && Shape{1, 28, 28}[2] == 28);
  static_assert(Shape{2, 3, 4, 5}.elements() == 120);
  static_assert(Shape{100'000, 100'000}.elements() == 10'000'000'000, "more than 32 bits hold");
  CHECK(Shape{3, 0, 5}.elements() == 0);
}

TEST_CASE("A Shape without extents is unknown, and a Shape with an extent of 0 is known", "[core]") {
  static_assert(!Shape{}.known() && Shape{}.elements() == 0 && Shape{}.rank() == 0);
  static_assert(Shape{0}.known() && Shape{0}.elements() == 0);
  static_assert(Shape{0} != Shape{});
  CHECK(text(Shape{}) == "[?]");
}

TEST_CASE("Shapes are equal only if their ranks and all extents are equal", "[core]") {
  static_assert(Shape{28, 28} == Shape{28, 28} && Shape{28, 28} != Shape{784} && Shape{2, 3} != Shape{3, 2});
  static_assert(Shape{1} != Shape{1, 1});
  Shape copy{Shape{4, 5}};
  CHECK(copy == Shape{4, 5});
  copy = Shape{};
  CHECK(copy == Shape{});
}

TEST_CASE("text lists the extents of a Shape, outermost first", "[core]") {
  CHECK(text(Shape{784}) == "[784]");
  CHECK(text(Shape{1, 28, 28}) == "[1, 28, 28]");
  CHECK(text(Shape{-1}) == "[-1]");
  CHECK(text(Shape{16, Shape::any, Shape::any}) == "[16, ?, ?]");
  CHECK(text(Shape{Shape::leading, 64}) == "[..., 64]");
}

TEST_CASE("A Shape that is known in part has no elements", "[core]") {
  static_assert(!Shape{16, Shape::any}.known() && Shape{16, Shape::any}.elements() == 0 && Shape{16, Shape::any}.rank_is_known());
  static_assert(!Shape{Shape::leading, 64}.known() && !Shape{Shape::leading, 64}.rank_is_known() && !Shape{}.rank_is_known());
  static_assert(Shape{3, 5}.known() && Shape{3, 5}.rank_is_known());
}

TEST_CASE("A Shape gives its last extent, and the same shape with another one", "[core]") {
  static_assert(Shape{3, 5}.last() == 5 && Shape{}.last() == Shape::any && Shape{16, Shape::any}.last() == Shape::any);
  static_assert(Shape{3, 5}.with_last(7) == Shape{3, 7} && Shape{5}.with_last(7) == Shape{7});
  static_assert(Shape{}.with_last(7) == Shape{Shape::leading, 7} && Shape{Shape::leading, 5}.with_last(7) == Shape{Shape::leading, 7});
  CHECK(Shape{Shape::any, 5}.with_last(7) == Shape{Shape::any, 7});
}
