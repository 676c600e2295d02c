#pragma once

#include <charconv>
#include <concepts>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>

namespace pdp::launch {

/// The number that `words` spell, between `least` and `most`. Throws UsageError, which begins with `name`: what it was given for.
template <class Number>
Number parse_number(std::string_view name, std::string_view words, Number least, Number most) {
  Number number{};
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc{} || end != words.data() + words.size())
    throw UsageError{text(name, " must be a number from ", least, " to ", most, "; found ", in_quotes(words))};
  bool is_number = true;  // words such as "nan" spell none
  if constexpr (std::floating_point<Number>) is_number = !is_nan(number);
  if (!is_number || number < least || number > most) throw UsageError{text(name, " must be from ", least, " to ", most, "; found ", words)};
  return number;
}

/// More ranks than any job has; what is larger is a slip of the hand.
inline constexpr int most_ranks = 1'000'000;
/// More ranks than one machine runs as its own processes or threads.
inline constexpr int most_local_ranks = 4096;

}  // namespace pdp::launch
