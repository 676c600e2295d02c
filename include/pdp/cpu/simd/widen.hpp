#pragma once

#include <cstdint>
#include <cstring>

#include <pdp/core/dtype.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/simd/simd.hpp>
#include <pdp/cpu/simd/vector.hpp>

namespace pdp::cpu {

/// Loads 16-bit numbers as floats.
template <Simd S>
[[gnu::always_inline]] inline void widen(const BFloat16* from, Lanes<float, S>& to) {
  using V = Lanes<float, S>;
  detail::Vector<std::uint16_t, V::bytes / 2> upper;
  std::memcpy(&upper, from, sizeof upper);
  const auto bits = __builtin_convertvector(upper, detail::Vector<std::uint32_t, V::bytes>) << 16;
  std::memcpy(&to.vector, &bits, sizeof bits);
}

/// Stores floats as 16-bit numbers, each rounded as by BFloat16's constructor.
template <Simd S>
[[gnu::always_inline]] inline void narrow(const Lanes<float, S>& from, BFloat16* to) {
  using V = Lanes<float, S>;
  using Bits = detail::Vector<std::uint32_t, V::bytes>;
  typename V::Vector numbers = from.vector;
  if constexpr (assumes_finite) asm("" : "+m"(numbers));  // so that the compiler does not infer that none is NaN
  Bits bits;
  std::memcpy(&bits, &numbers, sizeof bits);
  const Bits rounded = bits + 0x7fffU + ((bits >> 16) & 1U), no_number = bits | 0x400000U;
  const Bits chosen = ((bits & 0x7fffffffU) > 0x7f800000U ? no_number : rounded) >> 16;
  const auto upper = __builtin_convertvector(chosen, detail::Vector<std::uint16_t, V::bytes / 2>);
  std::memcpy(static_cast<void*>(to), &upper, sizeof upper);
}

/// Loads or stores the first `some` lanes. The others are zero after a load.
template <Simd S>
[[gnu::always_inline]] inline void widen(const BFloat16* from, Lanes<float, S>& to, Index some) {
  BFloat16 lanes[Lanes<float, S>::count]{};
  for (Index i = 0; i < some; ++i) lanes[i] = from[i];
  widen(lanes, to);
}
template <Simd S>
[[gnu::always_inline]] inline void narrow(const Lanes<float, S>& from, BFloat16* to, Index some) {
  BFloat16 lanes[Lanes<float, S>::count];
  narrow(from, lanes);
  for (Index i = 0; i < some; ++i) to[i] = lanes[i];
}

}  // namespace pdp::cpu
