#pragma once

/// Definitions for pdp/checkpoint/hash.hpp; see pdp/core/separate_compilation.hpp.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/checkpoint/hash.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

#if __has_include(<xxhash.h>)
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL  // so no library is linked
#endif
#include <xxhash.h>
#endif

namespace pdp::checkpoint {

#if __has_include(<xxhash.h>)
PDP_INLINE Hash hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}
#else
PDP_INLINE Hash hash_of(std::span<const std::byte>) {
  throw ConfigError{
      "checkpoints need xxHash (libxxhash-dev), which was not there when this program was compiled; install it and compile pdp again"};
}
#endif

PDP_INLINE std::string text_of(const Hash& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint64_t half = i < 16 ? hash.high : hash.low;
    text[i] = digits[(half >> (60 - 4 * (i % 16))) & 15];
  }
  return text;
}

PDP_INLINE std::optional<Hash> hash_in(std::string_view digits) {
  if (digits.size() != 32) return std::nullopt;
  Hash hash;
  const auto read = [](std::string_view half, std::uint64_t& into) {
    const auto [end, error] = std::from_chars(half.data(), half.data() + half.size(), into, 16);
    return error == std::errc{} && end == half.data() + half.size();
  };
  if (!read(digits.substr(0, 16), hash.high) || !read(digits.substr(16), hash.low) || text_of(hash) != digits) return std::nullopt;
  return hash;
}

}  // namespace pdp::checkpoint
