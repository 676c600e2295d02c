#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>

namespace pdp::launch {

/// The number that `words` spell; nothing if they spell none, or one that the type does not hold.
template <class Number>
std::optional<Number> read_number(std::string_view words) {
  Number number{};
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc{} || end != words.data() + words.size()) return std::nullopt;
  if constexpr (std::floating_point<Number>)
    if (is_nan(number)) return std::nullopt;  // words such as "nan" spell none
  return number;
}

/// The number that `words` spell, between `least` and `most`. Throws UsageError, which begins with `name`: what it was given for.
template <class Number>
Number parse_number(std::string_view name, std::string_view words, Number least, Number most) {
  const std::optional<Number> number = read_number<Number>(words);
  if (!number) throw UsageError{text(name, " must be a number from ", least, " to ", most, "; found ", in_quotes(words))};
  if (*number < least || *number > most) throw UsageError{text(name, " must be from ", least, " to ", most, "; found ", words)};
  return *number;
}

/// More ranks than any job has; what is larger is a slip of the hand.
inline constexpr int most_ranks = 1'000'000;
/// More ranks than one machine runs as its own processes or threads.
inline constexpr int most_local_ranks = 4096;

}  // namespace pdp::launch
