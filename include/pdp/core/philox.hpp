#pragma once

#include <array>
#include <cstdint>

namespace pdp::random {

using Block = std::array<std::uint32_t, 4>;

/// Philox4x32-10: ten rounds that turn a counter of 128 bits into as many random bits, for a key of 64 bits. Every word is a function of
/// counter and key alone. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr Block philox(const Block& counter, std::array<std::uint32_t, 2> key) {
  auto [a, b, c, d] = counter;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53u} * a, second = std::uint64_t{0xcd9e8d57u} * c;
    a = static_cast<std::uint32_t>(second >> 32) ^ b ^ key[0];
    b = static_cast<std::uint32_t>(second);
    c = static_cast<std::uint32_t>(first >> 32) ^ d ^ key[1];
    d = static_cast<std::uint32_t>(first);
    key[0] += 0x9e3779b9u;  // the golden ratio
    key[1] += 0xbb67ae85u;  // the square root of 3, less 1
  }
  return {a, b, c, d};
}

}  // namespace pdp::random
