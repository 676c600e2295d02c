#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/shape.hpp>
#include <pdp/host/update.hpp>
#include <pdp/testing/values.hpp>

/// What the tests of several folders need: numbers, how far apart they are, and what was thrown.
namespace support {

template <class T = float>
std::vector<T> normal(pdp::Index elements, int seed) {
  return pdp::testing::normal<T>(static_cast<std::size_t>(elements), seed);
}

/// All vector registers that this processor has.
inline std::vector<pdp::host::Simd> registers() {
  std::vector<pdp::host::Simd> found;
  for (const auto each : {pdp::host::Simd::baseline, pdp::host::Simd::avx2, pdp::host::Simd::avx512})
    if (each <= pdp::host::widest_simd()) found.push_back(each);
  return found;
}

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

/// An optimizer's pass by one gradient, into the parameters alone.
template <std::size_t Fields, class T, class Rule, class Step>
void update(const pdp::host::Cpu& cpu, const Rule& rule, const Step& step, std::span<T> parameters, std::span<const T> gradients,
            std::span<T> state) {
  const T* const only = gradients.data();
  pdp::host::update<Fields>(cpu, rule, step, parameters, std::span{&only, 1}, state);
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
