#include <pdp/core/dtype.hpp>

#include <set>
#include <string>

#include "catch.hpp"

using pdp::DType;

TEST_CASE("every element type has its number on the wire, which never changes", "[core]") {
  static_assert(pdp::dtype_of<std::byte> == DType::byte && static_cast<int>(DType::byte) == 0);
  static_assert(pdp::dtype_of<std::int32_t> == DType::int32 && static_cast<int>(DType::int32) == 1);
  static_assert(pdp::dtype_of<std::int64_t> == DType::int64 && static_cast<int>(DType::int64) == 2);
  static_assert(pdp::dtype_of<float> == DType::float32 && static_cast<int>(DType::float32) == 3);
  static_assert(pdp::dtype_of<double> == DType::float64 && static_cast<int>(DType::float64) == 4);
  static_assert(sizeof(DType) == 1);
  CHECK(name(pdp::dtype_of<float>) == std::string{"float32"});
}

TEST_CASE("only types of which every rank knows the size are elements", "[core]") {
  static_assert(!pdp::Element<char> && !pdp::Element<bool> && !pdp::Element<unsigned> && !pdp::Element<std::string>);
  static_assert(!pdp::Element<const float> && !pdp::Element<float&> && !pdp::Element<long double>);
  std::set<std::string> names;
  for (const DType type : {DType::byte, DType::int32, DType::int64, DType::float32, DType::float64}) names.insert(name(type));
  CHECK(names == std::set<std::string>{"byte", "int32", "int64", "float32", "float64"});
}

TEST_CASE("a number that is no element type's is called so", "[core]") {
  CHECK(name(static_cast<DType>(200)) == std::string{"an unknown type"});
}
