#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::checkpoint {

/// 128 bits of XXH3 (https://github.com/Cyan4973/xxHash), which finds damage. It is no protection against an attacker.
struct Hash {
  std::uint64_t high = 0, low = 0;
  friend constexpr bool operator==(const Hash&, const Hash&) = default;
};

[[nodiscard]] Hash hash_of(std::span<const std::byte> bytes);

/// Returns 32 hexadecimal digits, as `xxhsum -H2` prints them.
[[nodiscard]] std::string text_of(const Hash& hash);
/// Returns the hash that 32 digits mean, or nothing if they are none. Capital digits are none, so that a hash has one text only.
[[nodiscard]] std::optional<Hash> hash_in(std::string_view digits);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/hash.hpp>
#endif
