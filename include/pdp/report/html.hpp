#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

/// Text of a page in HTML. Numbers have a decimal point in every locale.
namespace pdp::report {

/// Returns words as text of HTML or as the value of an attribute in quotes. A byte that is not valid UTF-8, and a control character other
/// than newline and tab, becomes U+FFFD.
[[nodiscard]] std::string escaped(std::string_view words);

/// Returns a number with four significant digits, a large one as whole() does, or "NaN", "infinity" or "-infinity".
[[nodiscard]] std::string number(double value);
/// Returns an integer with commas between groups of three digits: "12,345".
[[nodiscard]] std::string whole(std::int64_t value);
/// Returns a time in words: "1.23 ms", "4.5 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string time_text(double seconds);
/// Returns a count with a word in the right number: "1 step", "2 steps".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view word);

/// A unit of time, and its length in seconds.
struct TimeUnit {
  const char* name;
  double seconds;
};
/// Returns the largest of s, ms and µs that is at most `seconds` long; µs for shorter times.
[[nodiscard]] TimeUnit unit_of(double seconds);

/// A table. Its first column heads the rows, and the others are aligned to the right. If it is wider than the page, readers can scroll it.
class Table {
 public:
  /// `caption`: the line above the table, also its name for screen readers.
  Table(std::string_view caption, const std::vector<std::string>& heads);

  /// Adds a row of plain text. The constructor and this function escape it.
  void row(const std::vector<std::string>& cells);
  [[nodiscard]] std::string html() const;

 private:
  std::string begin_, rows_;
};

/// Returns a part that readers can open and close. `inside` is HTML.
[[nodiscard]] std::string details(std::string_view summary, std::string_view inside);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/html.hpp>
#endif
