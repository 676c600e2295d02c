// What follows a flag of a benchmark.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>

namespace bench {

/// Throws UsageError where the words are no number, or one below the least.
template <class Number>
Number number(std::string_view flag, std::string_view words, Number least) {
  Number found{};
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), found);
  if (error != std::errc{} || end != words.data() + words.size() || found < least)
    throw pdp::UsageError{pdp::text(flag, " must be a number from ", least, "; found '", words, "'")};
  return found;
}

}  // namespace bench
