// Includes Catch2 2.13 or 3. Tests include this header instead of Catch2's.
//
// Matchers have the same names for both versions: CHECK_THAT(text, Contains("a") && !StartsWith("b")). Tests do not use namespace Catch,
// and include no header of Catch2 themselves; tests/includes checks both.
//
// Assertions are not thread-safe in either version. Threads of ranks hold checks_mutex while they assert, or report through
// pdp::testing, which rethrows on the main thread.
#pragma once

#include <cstdint>
#include <mutex>

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_all.hpp>
#include <string>

using Catch::Approx;

/// Returns the seed of this run, which `--rng-seed` sets.
inline std::uint32_t random_seed() { return Catch::getSeed(); }

// Catch2 3 uses the name Contains for ranges.
inline auto Contains(const std::string& text, Catch::CaseSensitive sensitive = Catch::CaseSensitive::Yes) {
  return Catch::Matchers::ContainsSubstring(text, sensitive);
}

#else

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;

inline std::uint32_t random_seed() { return Catch::rngSeed(); }

#endif

using Catch::Matchers::EndsWith;
using Catch::Matchers::Equals;
using Catch::Matchers::Matches;
using Catch::Matchers::Message;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Catch::Matchers::WithinULP;

/// Held by the thread of a rank while it asserts.
inline std::mutex checks_mutex;
