#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <pdp/core/requirements.hpp>

namespace pdp {

/// Whether the compiler may assume that no number is NaN or infinite (-ffast-math, -Ofast, -ffinite-math-only). It then removes calls of
/// std::isnan and std::isfinite, and comparisons ignore NaN. So pdp examines the bits of numbers instead.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
constexpr bool assumes_finite = true;
#else
constexpr bool assumes_finite = false;
#endif

/// Returns the bits of a number of 2, 4 or 8 bytes. The compiler's assumptions about the number do not carry over to the bits.
template <class T>
constexpr auto bits_of(T value) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  auto bits = std::bit_cast<Bits>(value);
#ifndef __CUDA_ARCH__
  if constexpr (assumes_finite)
    if (!std::is_constant_evaluated()) asm("" : "+r"(bits));  // or the compiler may infer from T that they are not those of a NaN
#endif
  return bits;
}

namespace detail {

template <class T>
using BitsOf = decltype(bits_of(T{}));

/// The bits of positive infinity.
template <class T>
constexpr BitsOf<T> infinite_bits = static_cast<BitsOf<T>>(sizeof(T) == 8                ? 0x7ff0000000000000U
                                                           : sizeof(T) == 4              ? 0x7f800000U
                                                           : std::is_same_v<T, _Float16> ? 0x7c00U
                                                                                         : 0x7f80U);

/// Returns the bits of a number without its sign.
template <class T>
constexpr BitsOf<T> magnitude_bits(T value) {
  return static_cast<BitsOf<T>>(bits_of(value) & (static_cast<BitsOf<T>>(~BitsOf<T>{}) >> 1));
}

/// Returns the number with these bits, also one that the compiler assumes impossible.
template <class T>
constexpr T from_bits(BitsOf<T> bits) {
#ifndef __CUDA_ARCH__
  if constexpr (assumes_finite)
    if (!std::is_constant_evaluated()) asm("" : "+r"(bits));  // or clang treats what it computes from such a constant as undefined
#endif
  return std::bit_cast<T>(bits);
}

}  // namespace detail

/// These functions return the results of std::isfinite, std::isnan, std::isinf and std::signbit, even if assumes_finite.
template <class T>
constexpr bool is_finite(T value) {
  return detail::magnitude_bits(value) < detail::infinite_bits<T>;
}
template <class T>
constexpr bool is_nan(T value) {
  return detail::magnitude_bits(value) > detail::infinite_bits<T>;
}
template <class T>
constexpr bool is_infinite(T value) {
  return detail::magnitude_bits(value) == detail::infinite_bits<T>;
}
template <class T>
constexpr bool is_negative(T value) {
  return bits_of(value) >> (8 * sizeof(T) - 1) != 0;
}

/// Returns whether a > b; false if one of them is NaN.
template <class T>
constexpr bool is_greater(T a, T b) {
  if constexpr (assumes_finite) return !is_nan(a) && !is_nan(b) && a > b;
  return a > b;
}

/// Returns infinity, even if assumes_finite.
template <class T>
constexpr T positive_infinity() {
  return detail::from_bits<T>(detail::infinite_bits<T>);
}

/// Returns NaN, even if assumes_finite.
template <class T>
constexpr T not_a_number() {
  return detail::from_bits<T>(static_cast<detail::BitsOf<T>>(detail::infinite_bits<T> | detail::infinite_bits<T> >> 1));
}

static_assert(is_finite(0.0) && is_finite(-3.4e38f) && is_nan(not_a_number<float>()) && !is_finite(not_a_number<double>()));
static_assert(is_infinite(positive_infinity<_Float16>()) && is_infinite(std::bit_cast<_Float16>(std::uint16_t{0x7c00})) &&
              is_negative(-0.0));

}  // namespace pdp
