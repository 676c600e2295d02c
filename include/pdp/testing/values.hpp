#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>

namespace pdp::testing {

/// Returns normally distributed numbers with mean 0 and standard deviation 1. They depend only on the seed.
template <std::floating_point T = float>
std::vector<T> normal(std::size_t elements, std::integral auto seed) {
  std::vector<T> values(elements);
  random::fill_normal<T>(random::make_key(static_cast<std::uint64_t>(seed), "testing"), 0, values);
  return values;
}

/// Returns the elementwise sum of normal(elements, rank) over `ranks` ranks, added in double in the order of ranks.
template <std::floating_point T = float>
std::vector<double> serial_sum(int ranks, std::size_t elements) {
  std::vector<double> sums(elements);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> values = normal<T>(elements, rank);
    for (std::size_t i = 0; i < elements; ++i) sums[i] += as_double(values[i]);
  }
  return sums;
}

/// Returns whether two ranges of one type hold the same bits: -0 and 0 differ, and a NaN is equal to itself.
template <std::ranges::contiguous_range R, std::ranges::contiguous_range S>
requires std::same_as<std::ranges::range_value_t<R>, std::ranges::range_value_t<S>>
bool same_bits(const R& left, const S& right) {
  const std::span<const std::byte> a = std::as_bytes(std::span{left}), b = std::as_bytes(std::span{right});
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Returns the largest difference between corresponding elements, divided by the largest expected magnitude. Returns infinity if the sizes
/// differ or a value is NaN, and 0 if both ranges are empty.
template <std::ranges::random_access_range R, std::ranges::random_access_range S>
double relative_difference(const R& values, const S& expected) {
  constexpr auto infinite = positive_infinity<double>();
  if (std::ranges::size(values) != std::ranges::size(expected)) return infinite;
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < std::ranges::size(values); ++i) {
    const auto at = static_cast<std::ranges::range_difference_t<R>>(i);
    const auto value = as_double(std::ranges::begin(values)[at]), wanted = as_double(std::ranges::begin(expected)[at]);
    if (is_nan(value) || is_nan(wanted)) return infinite;
    if (value != wanted) difference = std::max(difference, std::abs(value - wanted));
    magnitude = std::max(magnitude, std::abs(wanted));
  }
  return difference > 0 ? difference / magnitude : 0;
}

}  // namespace pdp::testing
