#pragma once

/// Definitions for pdp/core/random.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::random {

PDP_INLINE std::uint64_t Stream::next() {
  if (drawn_ % 2 == 0) block_ = bits(key_, drawn_ / 2);
  const std::size_t low = 2 * (drawn_++ % 2);
  return std::uint64_t{block_[low]} | std::uint64_t{block_[low + 1]} << 32;
}

PDP_INLINE std::uint64_t Stream::below(std::uint64_t bound) {
  const std::uint64_t surplus = (0 - bound) % bound;  // 2^64 modulo bound; lower draws would make small results too frequent
  std::uint64_t draw = next();
  while (draw < surplus) draw = next();
  return draw % bound;
}

}  // namespace pdp::random
