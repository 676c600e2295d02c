#pragma once

#include <pdp/core/dtype.hpp>
#include <pdp/core/shape.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <vector>

#include "support.hpp"

/// Numbers for comparisons of a GPU, which may compute in 16 bits, with a CPU in float.
namespace gpu {

/// The relative error of a value that is rounded to T, with room for sums in another order.
template <class T>
constexpr double rounding = std::same_as<T, float>           ? 1e-5
                            : std::same_as<T, pdp::BFloat16> ? 1.0 / 128
                                                             : 1.0 / 1024;

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(static_cast<T>(value));
  return all;
}
template <class T>
std::vector<float> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}
/// Returns normal numbers that T represents exactly.
template <class T>
std::vector<float> exact(pdp::Index elements, int seed, float mean = 0) {
  auto values = support::normal(elements, seed);
  for (float& value : values) value = static_cast<float>(static_cast<T>(value + mean));
  return values;
}
inline double largest(const std::vector<float>& values) {
  double found = 1;
  for (const float each : values) found = std::max(found, std::abs(static_cast<double>(each)));
  return found;
}

}  // namespace gpu
