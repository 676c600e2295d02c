#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>

#include <pdp/core/random.hpp>

namespace pdp::random {

/// Returns a 62-bit hash of the bits of the values, so -0 and 0 differ. The result is never the minimum or maximum of its type.
template <class T>
std::int64_t hash_of(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  std::uint64_t state = values.size();
  for (const T value : values) state = mix(state ^ std::bit_cast<Bits>(value));
  return static_cast<std::int64_t>(state >> 2);
}

}  // namespace pdp::random
