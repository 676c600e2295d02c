#include <pdp/core/dtype.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "catch.hpp"

using pdp::DType;

TEST_CASE("dtype_of maps each element type to its fixed number in the wire format", "[core]") {
  static_assert(pdp::dtype_of<std::byte> == DType::byte && static_cast<int>(DType::byte) == 0);
  static_assert(pdp::dtype_of<std::int32_t> == DType::int32 && static_cast<int>(DType::int32) == 1);
  static_assert(pdp::dtype_of<std::int64_t> == DType::int64 && static_cast<int>(DType::int64) == 2);
  static_assert(pdp::dtype_of<float> == DType::float32 && static_cast<int>(DType::float32) == 3);
  static_assert(pdp::dtype_of<double> == DType::float64 && static_cast<int>(DType::float64) == 4);
  static_assert(pdp::dtype_of<std::int8_t> == DType::int8 && static_cast<int>(DType::int8) == 5);
  static_assert(pdp::dtype_of<pdp::Float16> == DType::float16 && static_cast<int>(DType::float16) == 6);
  static_assert(pdp::dtype_of<pdp::BFloat16> == DType::bfloat16 && static_cast<int>(DType::bfloat16) == 7);
  static_assert(sizeof(DType) == 1);
  CHECK(name(pdp::dtype_of<float>) == std::string{"float32"});
}

TEST_CASE("Element rejects types that DType does not list, and each DType has a name", "[core]") {
  static_assert(!pdp::Element<char> && !pdp::Element<bool> && !pdp::Element<unsigned> && !pdp::Element<std::string>);
  static_assert(!pdp::Element<const float> && !pdp::Element<float&> && !pdp::Element<long double>);
  std::set<std::string> names;
  for (const DType type :
       {DType::byte, DType::int8, DType::int32, DType::int64, DType::float16, DType::bfloat16, DType::float32, DType::float64})
    names.insert(name(type));
  CHECK(names == std::set<std::string>{"byte", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"});
}

TEST_CASE("BFloat16 rounds a float to the nearest value, ties to even", "[core]") {
  using pdp::BFloat16;
  const auto rounded = [](float value) { return static_cast<float>(BFloat16{value}); };
  for (const float exact : {0.0f, -0.0f, 1.0f, -2.5f, 256.0f, 0x1p-126f, 0x1p-133f, std::numeric_limits<float>::infinity()})
    CHECK(std::bit_cast<std::uint32_t>(rounded(exact)) == std::bit_cast<std::uint32_t>(exact));
  CHECK(rounded(0x1.01p0f) == 0x1.00p0f);  // halfway: to even, down
  CHECK(rounded(0x1.03p0f) == 0x1.04p0f);  // halfway: to even, up
  CHECK(rounded(0x1.0101p0f) == 0x1.02p0f);
  CHECK(rounded(-0x1.0301p0f) == -0x1.04p0f);
  CHECK(rounded(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(rounded(std::bit_cast<float>(0x7f800001U))));  // truncation would make it infinity
  static_assert(static_cast<float>(BFloat16{3.0f}) == 3.0f && static_cast<float>(BFloat16{}) == 0.0f);
}

TEST_CASE("name(DType) returns 'an unknown type' for an invalid value", "[core]") {
  CHECK(name(static_cast<DType>(200)) == std::string{"an unknown type"});
}
