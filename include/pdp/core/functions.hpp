#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include <pdp/core/requirements.hpp>

/// Functions of vectors V, for optimizer rules and elementwise layers, besides + - * / and sqrt. An argument is a V or a number. They do
/// the same on a CPU and on a GPU, and for a V that is a single number.
namespace pdp::functions {

/// Returns, in each lane, `yes` if the comparison is true and `no` otherwise: select(g > 0, g, 0.1f * g). Comparisons of vectors are joined
/// by && and ||, and negated by !. Both `yes` and `no` are computed in all lanes.
template <class Condition, class Yes, class No>
[[gnu::always_inline]] constexpr auto select(const Condition& condition, const Yes& yes, const No& no) {
  if constexpr (std::same_as<Condition, bool>) {
    using Either = std::common_type_t<Yes, No>;
    return condition ? static_cast<Either>(yes) : static_cast<Either>(no);
  } else {
    return condition.select(yes, no);
  }
}

/// Returns a number as a V if that is a single number, so that it is computed in that type. A vector converts it itself.
template <class V>
constexpr auto number(double value) {
  if constexpr (std::floating_point<V>)
    return static_cast<V>(value);
  else
    return value;
}

/// The error function of x, and exp(-x^2).
template <class V>
struct ErrorFunction {
  V value, exponential;
};
/// Returns both. Vectors compute one from the other.
template <class V>
constexpr ErrorFunction<V> error_function(const V& x) {
  using std::erf, std::exp;
  return {erf(x), exp(-(x * x))};
}

/// Returns the value without its sign. NaN stays NaN.
template <class V>
[[gnu::always_inline]] constexpr V abs(const V& x) {
  return select(x > 0, x, 0 - x);  // not -x, so that -0 becomes 0
}

/// Returns 1 for positive values, -1 for negative ones, and zeros and NaN as they are.
template <class V>
[[gnu::always_inline]] constexpr V sign(const V& x) {
  return select(x > 0, 1, select(x < 0, -1, x));
}

namespace detail {

/// Returns a number as the common type of A and B, if both are numbers. Returns a vector as it is.
template <class B, class A>
[[gnu::always_inline]] constexpr auto joined(const A& a) {
  if constexpr (std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
    return static_cast<std::common_type_t<A, B>>(a);
  else
    return a;
}

}  // namespace detail

/// Return the smaller and the larger value, or NaN if one of them is NaN.
template <class A, class B>
[[gnu::always_inline]] constexpr auto min(const A& a, const B& b) {
  const auto left = detail::joined<B>(a);
  const auto right = detail::joined<A>(b);
  return select(left < right, left, select(left >= right, right, left + right));
}
template <class A, class B>
[[gnu::always_inline]] constexpr auto max(const A& a, const B& b) {
  const auto left = detail::joined<B>(a);
  const auto right = detail::joined<A>(b);
  return select(left > right, left, select(left <= right, right, left + right));
}

static_assert(select(true, 1.0f, 0) == 1 && abs(-2.0f) == 2 && sign(-3.0f) == -1 && min(2.0f, 1) == 1 && max(2.0f, 1) == 2);

}  // namespace pdp::functions
