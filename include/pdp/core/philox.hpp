#pragma once

#include <array>
#include <cstdint>

#include <pdp/core/requirements.hpp>

namespace pdp::random {

/// 128 random bits.
using Block = std::array<std::uint32_t, 4>;

/// Philox4x32-10: ten rounds, unrolled by recursion, map a 128-bit counter and a 64-bit key to 128 random bits. The result depends on
/// counter and key alone. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
template <int rounds = 10>
constexpr Block philox(const Block& counter, std::array<std::uint32_t, 2> key) {
  if constexpr (rounds == 0) {
    return counter;
  } else {
    const std::uint64_t first = std::uint64_t{0xd2511f53u} * counter[0], second = std::uint64_t{0xcd9e8d57u} * counter[2];
    const Block mixed{static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
                      static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    return philox<rounds - 1>(mixed, {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u});  // Weyl constants: golden ratio, sqrt(3) - 1
  }
}

}  // namespace pdp::random
