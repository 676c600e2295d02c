#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

/// What the tests of several folders ask: how far apart numbers are, and what was thrown.
namespace support {

/// The largest |a - b| / max(1, |b|); not a number where one of them is none, infinite where the counts differ.
template <class A, class B>
double difference(const A& values, const B& expected) {
  if (std::size(values) != std::size(expected)) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < std::size(values); ++i) {
    const double wanted = static_cast<double>(expected[i]);
    const double each = std::abs(static_cast<double>(values[i]) - wanted) / std::max(1.0, std::abs(wanted));
    if (std::isnan(each)) return each;
    largest = std::max(largest, each);
  }
  return largest;
}

/// What the call throws as an E; nothing where it throws no E.
template <class E, class F>
std::optional<std::string> message_of(F&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace support
