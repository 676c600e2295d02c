#include <pdp/core/precision.hpp>

#include <concepts>

#include "catch.hpp"

using pdp::Precision;
using pdp::SupportedPrecision;

TEST_CASE("Precision takes the type of an unset role from the role before it", "[core]") {
  static_assert(std::same_as<Precision<float>::master, float> && std::same_as<Precision<float>::reduce, float>);
  static_assert(std::same_as<Precision<float, double>::reduce, double>);
  static_assert(std::same_as<Precision<float, double, float>::master, double> &&
                std::same_as<Precision<float, double, float>::reduce, float>);
  SUCCEED();
}

TEST_CASE("SupportedPrecision accepts one floating-point type, or float with bfloat16 in some roles", "[core]") {
  static_assert(SupportedPrecision<Precision<float>> && SupportedPrecision<Precision<double, double, double>>);
  static_assert(SupportedPrecision<Precision<float, float, pdp::BFloat16>> &&
                !SupportedPrecision<Precision<double, double, pdp::BFloat16>>);
  static_assert(!SupportedPrecision<Precision<float, float, double>> && !SupportedPrecision<Precision<float, double, float>>);
  static_assert(SupportedPrecision<Precision<pdp::BFloat16, float, pdp::BFloat16>> && !SupportedPrecision<Precision<pdp::BFloat16>> &&
                !SupportedPrecision<Precision<pdp::BFloat16, double>> && !SupportedPrecision<Precision<double, float>>);
  static_assert(!SupportedPrecision<Precision<std::int32_t>> && !SupportedPrecision<Precision<long double>> && !SupportedPrecision<float>);
  SUCCEED();
}
