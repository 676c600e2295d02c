#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::testing {

/// The options of check_gradients() and check_loss_gradients().
struct GradientOptions {
  Index rows = 3;          // samples
  std::uint64_t seed = 1;  // of all random numbers
  double mean = 0;         // of the random inputs, which are normal
  double deviation = 1;    // and their standard deviation
  double step = 0;         // of the differences; 0: 1e-5 for double, 1e-2 for float
  double tolerance = 0;    // of a gradient, relative to the largest one in its tensor; 0: 1e-6 for double, 1e-2 for float
};

namespace detail {

/// Throws ConfigError if there are no rows.
void check_rows(Index rows);

/// Returns the options with step and tolerance for elements of type T.
template <std::floating_point T>
GradientOptions for_type(GradientOptions options) {
  check_rows(options.rows);
  if (options.step == 0) options.step = std::same_as<T, double> ? 1e-5 : 1e-2;
  if (options.tolerance == 0) options.tolerance = std::same_as<T, double> ? 1e-6 : 1e-2;
  return options;
}

/// Returns the numbers as doubles.
template <class T>
std::vector<double> doubles(std::span<const T> numbers) {
  return {numbers.begin(), numbers.end()};
}
/// Returns normal numbers that depend on the seed and a name.
template <std::floating_point T>
std::vector<T> random_values(Index count, const GradientOptions& options, std::string_view name, double mean, double deviation) {
  std::vector<T> values(as_size(count));
  random::fill_normal<T>(random::make_key(options.seed, name), 0, values);
  for (T& value : values) value = static_cast<T>(mean + deviation * as_double(value));
  return values;
}

/// A gradient that differs from the central difference.
struct Mismatch {
  Index element = 0;
  double found = 0, expected = 0;
};

/// Returns the sum of c y.
double weighted_sum(std::span<const double> c, std::span<const double> y);

/// Returns "FUNCTION gives FOUND as the gradient of ELEMENT; expected EXPECTED, the central difference of DIFFERENTIATED".
std::string gradient_fault(const std::string& function, const std::string& element, const Mismatch& mismatch,
                           const std::string& differentiated);
/// Returns "element 2 of row 1 of WHAT".
std::string element_name(std::string_view what, Index width, Index element);
/// Returns a number with six digits, for a message.
std::string six_digits(double value);

/// Returns the central difference of the sum of c y with respect to `value`. y() computes the outputs, and reads `value`.
template <class T, class F>
double central_difference(T& value, double step, std::span<const double> c, F&& y) {
  const T kept = value;
  const T above = static_cast<T>(as_double(kept) + step), below = static_cast<T>(as_double(kept) - step);
  value = above;
  std::vector<double> change = y();
  value = below;
  const std::vector<double> lower = y();
  value = kept;
  for (std::size_t i = 0; i < change.size(); ++i) change[i] -= lower[i];
  return weighted_sum(c, change) / (as_double(above) - as_double(below));
}

/// Compares the gradient of the sum of c y with central differences, for each of `values`. Returns the first difference that is too large,
/// also with a smaller step: the first step may lie across a kink, such as that of Relu.
template <class T, class F>
std::optional<Mismatch> first_mismatch(std::span<T> values, std::span<const T> gradient, std::span<const double> c,
                                       const GradientOptions& options, F&& y) {
  constexpr double part_of_step = 1.0 / 8;
  std::vector<double> expected;
  double largest = 0;
  for (T& value : values) {
    expected.push_back(central_difference(value, options.step, c, y));
    largest = std::max(largest, std::abs(expected.back()));
  }
  double terms = 0;
  const std::vector<double> now = y();
  for (std::size_t i = 0; i < now.size(); ++i) terms += std::abs(c[i] * now[i]);
  const double rounding = terms * as_double(std::numeric_limits<T>::epsilon()) / options.step;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto found = as_double(gradient[i]);
    const auto agrees = [&](double wanted, double noise) {
      return is_finite(found) && is_finite(wanted) && std::abs(found - wanted) <= options.tolerance * largest + noise;
    };
    if (agrees(expected[i], rounding)) continue;
    const double nearer = central_difference(values[i], options.step * part_of_step, c, y);
    if (!agrees(nearer, rounding / part_of_step)) return Mismatch{as_index(i), found, nearer};
  }
  return {};
}

}  // namespace detail

}  // namespace pdp::testing

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/differences.hpp>
#endif
