#pragma once

/// Definitions for pdp/report/html.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/html.hpp>

namespace pdp::report {

namespace detail {

/// Returns the length of the valid UTF-8 sequence at the beginning of `words`, or 0 if there is none.
PDP_INLINE std::size_t utf8_length(std::string_view words) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(words[at])); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 0x6 ? 2 : first >> 4 == 0xe ? 3 : first >> 3 == 0x1e ? 4 : 0;
  if (length == 0 || length > words.size()) return 0;
  if (length == 1) return 1;
  constexpr std::array<unsigned, 5> least{0, 0, 0x80, 0x800, 0x10000};
  unsigned code = first & (0x7fu >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if (byte(at) >> 6 != 2) return 0;
    code = code << 6 | (byte(at) & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000, is_control = code < 0xa0;
  return code < least[length] || code > 0x10ffff || is_surrogate || is_control ? 0 : length;
}

}  // namespace detail

PDP_INLINE std::string escaped(std::string_view words) {
  std::string html;
  html.reserve(words.size());
  while (!words.empty()) {
    const char letter = words.front();
    const std::size_t length = detail::utf8_length(words);
    const bool is_control = (letter >= 0 && letter < ' ' && letter != '\n' && letter != '\t') || letter == 0x7f;
    if (letter == '&')
      html += "&amp;";
    else if (letter == '<')
      html += "&lt;";
    else if (letter == '>')
      html += "&gt;";
    else if (letter == '"')
      html += "&quot;";
    else if (letter == '\'')
      html += "&#39;";
    else if (length == 0 || is_control)
      html += "\xef\xbf\xbd";
    else
      html += words.substr(0, length);
    words.remove_prefix(std::max<std::size_t>(1, length));
  }
  return html;
}

PDP_INLINE std::string number(double value) {
  if (is_nan(value)) return "NaN";
  if (!is_finite(value)) return is_negative(value) ? "-infinity" : "infinity";
  if (std::abs(value) >= 9999.5 && std::abs(value) < 1e9) return whole(std::llround(value));
  return fmt::format("{:.4g}", value);
}

PDP_INLINE std::string whole(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

PDP_INLINE TimeUnit unit_of(double seconds) {
  if (seconds >= 1) return {"s", 1};
  return seconds >= 1e-3 ? TimeUnit{"ms", 1e-3} : TimeUnit{"µs", 1e-6};
}

PDP_INLINE std::string time_text(double seconds) {
  if (!is_finite(seconds) || std::abs(seconds) > 1e12) return number(seconds) + " s";
  const auto all = static_cast<std::int64_t>(std::llround(seconds));
  if (all >= 3600) return fmt::format("{} h {} min", all / 3600, all % 3600 / 60);
  if (all >= 60) return fmt::format("{} min {} s", all / 60, all % 60);
  const TimeUnit unit = unit_of(seconds);
  return fmt::format("{:.3g} {}", seconds / unit.seconds, unit.name);
}

PDP_INLINE std::string counted(std::int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", whole(count), word, count == 1 ? "" : "s");
}

PDP_INLINE Table::Table(std::string_view caption, const std::vector<std::string>& heads) {
  begin_ =
      fmt::format("<p class=\"note\">{0}</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\n<thead><tr>",
                  escaped(caption));
  for (const std::string& head : heads) begin_ += fmt::format("<th scope=\"col\">{}</th>", escaped(head));
  begin_ += "</tr></thead>\n<tbody>\n";
}

PDP_INLINE void Table::row(const std::vector<std::string>& cells) {
  const char *open = "<tr><th scope=\"row\">", *close = "</th>";
  for (const std::string& cell : cells) {
    rows_ += open + escaped(cell) + close;
    open = "<td>";
    close = "</td>";
  }
  rows_ += "</tr>\n";
}

PDP_INLINE std::string Table::html() const { return begin_ + rows_ + "</tbody></table></div>\n"; }

PDP_INLINE std::string details(std::string_view summary, std::string_view inside) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), inside);
}

}  // namespace pdp::report
