#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <pdp/cpu/simd/lanes.hpp>

namespace pdp::cpu {

// Exponential and hyperbolic tangent of floats by the polynomials of the Cephes library (Moshier, "Methods and programs for mathematical
// functions", 1989), accurate to two units in the last place. NaN stays NaN.

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

/// The error function, with an absolute error of at most 2e-7. Abramowitz, Stegun, "Handbook of mathematical functions", 1964, 7.1.26.
template <Simd S>
[[gnu::always_inline]] inline Lanes<float, S> erf(const Lanes<float, S>& x) {
  using V = Lanes<float, S>;
  const V size = where_greater(V{}, x, -x, x), t = 1 / (0.3275911f * size + 1);
  V p = V::all(1.061405429f);
  for (const float coefficient : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) p = p * t + coefficient;
  const V far = 1 - p * t * exp(-(size * size));
  return where_greater(V{}, x, -far, far);
}

/// For doubles, these functions call the C library for each lane.
template <Simd S>
Lanes<double, S> exp(const Lanes<double, S>& x) {
  return Lanes<double, S>::generate([&x](int lane) { return std::exp(x.vector[lane]); });
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
