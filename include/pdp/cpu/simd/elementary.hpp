#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <pdp/core/finite.hpp>
#include <pdp/core/functions.hpp>
#include <pdp/cpu/simd/lanes.hpp>

namespace pdp::cpu {

// Exponential, logarithm and hyperbolic tangent of floats by the polynomials of the Cephes library (Moshier, "Methods and programs for
// mathematical functions", 1989), accurate to two units in the last place. NaN stays NaN.

template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> exp(const Lanes<float, S>& a) {
  using V = Lanes<float, S>;
  using Whole = detail::Vector<std::int32_t, V::bytes>;
  constexpr float least = -87.33654f, most = 88.37626f;  // exp is 0 below `least` (never a denormal), exp(most) above `most`
  const V x = where_greater(V::all(least), a, V::all(least), where_greater(a, V::all(most), V::all(most), a));
  // e^x = 2^n e^f with n the integer nearest to x / ln 2. NaN is replaced first, as it cannot be converted to an integer.
  const V binary = where_greater(x, V::all(least), x, V::all(least)) * 1.44269504f;
  const Whole n = __builtin_convertvector((binary + where_greater(V{}, binary, V::all(-0.5f), V::all(0.5f))).vector, Whole);
  const V whole{__builtin_convertvector(n, typename V::Vector)};
  const V f = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  V p = V::all(1.9875691500e-4f);
  for (const float coefficient : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = p * f + coefficient;
  const Whole power = (n + 127) << 23;
  V scale;
  static_assert(sizeof scale == sizeof power);
  std::memcpy(&scale.vector, &power, sizeof power);
  return where_greater(V::all(least), a, V{}, (p * (f * f) + f + 1) * scale);
}

template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> tanh(const Lanes<float, S>& x) {
  using V = Lanes<float, S>;
  const V size = where_greater(V{}, x, -x, x), square = x * x;
  const V far = 1 - 2 / (exp(2 * size) + 1);
  V p = V::all(-5.70498872745e-3f);
  for (const float coefficient : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f})
    p = p * square + coefficient;
  return where_greater(size, V::all(0.625f), where_greater(V{}, x, -far, far), x + x * (square * p));
}

namespace detail {

/// Returns log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1. `plus`: a number to add to the result.
template <class V>
[[gnu::always_inline]] inline V log_near_one(const V& f, const V& plus) {
  const V square = f * f;
  V p = V::all(7.0376836292e-2f);
  for (const float coefficient : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                  2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    p = p * f + coefficient;
  return f + (f * square * p + plus - 0.5f * square);
}

}  // namespace detail

/// The natural logarithm: minus infinity for zeros, NaN for negative numbers.
template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> log(const Lanes<float, S>& a) {
  using V = Lanes<float, S>;
  using Whole = detail::Vector<std::int32_t, V::bytes>;
  constexpr float least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  const auto is_usual = a > 0 && a <= most;
  const V x = is_usual.select(where_greater(V::all(least), a, a * 0x1p23f, a), 1);  // no denormals
  // x = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), by the bits of x. `root` has those of sqrt(1/2).
  constexpr std::int32_t root = 0x3f3504f3;
  Whole bits;
  std::memcpy(&bits, &x.vector, sizeof bits);
  const Whole n = (bits - root) >> 23;
  bits -= n << 23;
  V f;
  std::memcpy(&f.vector, &bits, sizeof bits);
  f = f - 1;
  const V whole = V{__builtin_convertvector(n, typename V::Vector)} - where_greater(V::all(least), a, V::all(23), V{});
  const V found = detail::log_near_one(f, whole * -2.12194440e-4f) + whole * 0.693359375f;
  const V infinite = V::all(positive_infinity<float>()), none = V::all(not_a_number<float>());
  // NaN and infinity come back as they are, and other numbers that are not above 0 give -infinity or NaN.
  return is_usual.select(found, (a > most || a != a).select(a, (a >= 0).select(-infinite, none)));
}

/// log(1 + x), also accurate for x near 0.
template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> log1p(const Lanes<float, S>& x) {
  using V = Lanes<float, S>;
  return (x > -0.2928932f && x < 0.4142135f).select(detail::log_near_one(x, V{}), log(1 + x));
}

/// The error function, with an absolute error of at most 2e-7, and exp(-x^2). Abramowitz, Stegun, "Handbook of mathematical functions",
/// 1964, 7.1.26.
template <Simd S>
[[gnu::always_inline]] inline functions::ErrorFunction<Lanes<float, S>> error_function(const Lanes<float, S>& x) {
  using V = Lanes<float, S>;
  const V size = where_greater(V{}, x, -x, x), t = 1 / (0.3275911f * size + 1), exponential = exp(-(x * x));
  V p = V::all(1.061405429f);
  for (const float coefficient : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) p = p * t + coefficient;
  const V far = 1 - p * t * exponential;
  return {where_greater(V{}, x, -far, far), exponential};
}
template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> erf(const Lanes<float, S>& x) {
  return error_function(x).value;
}

/// For doubles, these functions call the C library for each lane.
template <Simd S>
Lanes<double, S> exp(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::exp(x.vector[lane]); });
}
template <Simd S>
Lanes<double, S> log(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::log(x.vector[lane]); });
}
template <Simd S>
Lanes<double, S> log1p(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::log1p(x.vector[lane]); });
}
template <Simd S>
Lanes<double, S> tanh(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::tanh(x.vector[lane]); });
}
template <Simd S>
Lanes<double, S> erf(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::erf(x.vector[lane]); });
}

}  // namespace pdp::cpu
