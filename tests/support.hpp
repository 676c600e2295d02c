#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <pdp/core/shape.hpp>
#include <pdp/cpu/update.hpp>
#include <pdp/testing/values.hpp>

/// Helpers for the tests of several folders: random numbers, differences and error messages.
namespace support {

template <class T = float>
std::vector<T> normal(pdp::Index elements, int seed) {
  return pdp::testing::normal<T>(static_cast<std::size_t>(elements), seed);
}

/// Returns all kinds of vector registers that this processor has.
inline std::vector<pdp::cpu::Simd> registers() {
  std::vector<pdp::cpu::Simd> found;
  for (const auto each : {pdp::cpu::Simd::baseline, pdp::cpu::Simd::avx2, pdp::cpu::Simd::avx512})
    if (each <= pdp::cpu::widest_simd()) found.push_back(each);
  return found;
}

/// Returns the largest |a - b| / max(1, |b|). Returns NaN if a difference is NaN, and infinity if the sizes differ.
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

/// Updates parameters by an optimizer's rule and one gradient. Writes no copies of the parameters.
template <std::size_t Fields, class T, class Rule>
void update(const pdp::cpu::Cpu& cpu, const Rule& rule, const pdp::StepInfo& step, std::span<T> parameters, std::span<const T> gradients,
            std::span<T> state) {
  const T* const only = gradients.data();
  const pdp::StepNumbers numbers{.info = step};
  pdp::cpu::update<Fields>(cpu, rule, &numbers, parameters, std::span{&only, 1}, state);
}

/// Computes a loss and its gradient, with the scale passed as a value. Returns the sums of the loss.
template <class Loss, class T, class Target>
pdp::LossSums sums_of(const Loss& loss, pdp::Matrix<const T> output, std::span<Target> targets, std::type_identity_t<T> scale,
                      pdp::Matrix<T> gradient) {
  const double of_rows = static_cast<double>(scale);
  pdp::LossSums sums;
  loss(pdp::cpu::Cpu{}, output, std::span<const std::remove_const_t<Target>>{targets}, &of_rows, gradient, &sums);
  return sums;
}

/// Returns the message of the E that the call throws, or nullopt if it throws nothing.
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
