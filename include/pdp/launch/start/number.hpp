#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>

namespace pdp::launch {

/// Returns the number that `words` spell. Returns nothing if they spell none, or one that is out of the range of the type.
template <class Number>
std::optional<Number> read_number(std::string_view words) {
  Number number{};
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc{} || end != words.data() + words.size()) return std::nullopt;
  if constexpr (std::floating_point<Number>)
    if (is_nan(number)) return std::nullopt;  // for words such as "nan"
  return number;
}

/// Returns the number that `words` spell. Throws UsageError if it is not between `least` and `most`. The message begins with `name`, the
/// option or variable.
template <class Number>
Number parse_number(std::string_view name, std::string_view words, Number least, Number most) {
  const std::optional<Number> number = read_number<Number>(words);
  if (!number) throw UsageError{text(name, " must be a number from ", least, " to ", most, "; found ", in_quotes(words))};
  if (*number < least || *number > most) throw UsageError{text(name, " must be from ", least, " to ", most, "; found ", words)};
  return *number;
}

/// The largest number of ranks that is accepted for a job. No job has more, so a larger number is a typing error.
inline constexpr int most_ranks = 1'000'000;
/// The largest number of ranks that one machine starts, as processes or threads.
inline constexpr int most_local_ranks = 4096;

}  // namespace pdp::launch
