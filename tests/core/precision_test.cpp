#include <pdp/core/precision.hpp>

#include <concepts>

#include "catch.hpp"

using pdp::Precision;
using pdp::UniformPrecision;

TEST_CASE("a Precision takes for each role what was said, else what the role before it has", "[core]") {
  static_assert(std::same_as<Precision<float>::master, float> && std::same_as<Precision<float>::reduce, float>);
  static_assert(std::same_as<Precision<float, double>::reduce, double>);
  static_assert(std::same_as<Precision<float, double, float>::master, double> &&
                std::same_as<Precision<float, double, float>::reduce, float>);
  SUCCEED();
}

TEST_CASE("a Precision is uniform where one floating-point element type serves all roles", "[core]") {
  static_assert(UniformPrecision<Precision<float>> && UniformPrecision<Precision<double, double, double>>);
  static_assert(!UniformPrecision<Precision<float, float, double>> && !UniformPrecision<Precision<float, double, float>>);
  static_assert(!UniformPrecision<Precision<std::int32_t>> && !UniformPrecision<Precision<long double>> && !UniformPrecision<float>);
  SUCCEED();
}
