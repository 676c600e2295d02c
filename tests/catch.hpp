// The one include of every test: Catch2, whether 2.13 or 3.
//
// String matchers have one name under both: CHECK_THAT(text, Contains("a") && !StartsWith("b")).
// Assertions are not thread-safe in either: rank threads report through pdp::testing, which rethrows on the main thread.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_all.hpp>
#include <string>

using Catch::Approx;

// Catch2 3 gave the name Contains to ranges.
inline auto Contains(const std::string& text, Catch::CaseSensitive sensitive = Catch::CaseSensitive::Yes) {
  return Catch::Matchers::ContainsSubstring(text, sensitive);
}

#else

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;

#endif

using Catch::Matchers::EndsWith;
using Catch::Matchers::Equals;
using Catch::Matchers::Matches;
using Catch::Matchers::Message;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Catch::Matchers::WithinULP;
