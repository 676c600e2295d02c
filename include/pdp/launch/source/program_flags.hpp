#pragma once

/// Definitions for pdp/launch/program_flags.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/program_flags.hpp>

namespace pdp::launch {

namespace detail {

constexpr bool is_letter_of_flag(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '-' ||
         letter == '_';
}

/// Returns whether a text has this word, with no letter of a flag before or behind it.
PDP_INLINE bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_letter_of_flag(text[at - 1])) && (end == text.size() || !is_letter_of_flag(text[end]))) return true;
  }
  return false;
}

/// Returns the number of letters that must be added, removed, replaced or swapped with their neighbour to turn one word into the other.
/// Both have up to 31 letters.
PDP_INLINE std::size_t distance(std::string_view from, std::string_view to) {
  std::array<std::array<std::size_t, 32>, 32> edits{};
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const bool same = from[i - 1] == to[j - 1];
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[from.size()][to.size()];
}

}  // namespace detail

PDP_INLINE bool asks_for_help(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view{argv[i]} != "--"; ++i)
    if (std::string_view{argv[i]} == "--help") return true;
  return false;
}

PDP_INLINE std::string help_text(const ProgramFlags& program) {
  std::string words = program.help;
  if (!words.empty() && words.back() != '\n') words += '\n';
  words += text(words.empty() ? "" : "\n", "Flags of pdp:\n");
  constexpr std::size_t column = 22;
  for (const Flag& flag : flags_of_run) {
    const std::string begin = text("  ", flag.name, ' ', flag.value);
    words += text(begin, std::string(column - begin.size(), ' '), flag.meaning, '\n');
  }
  return words + text("  --", std::string(column - 4, ' '), "ends these flags: the program gets all arguments behind it\n");
}

PDP_INLINE std::string_view intended_flag(std::string_view argument, const ProgramFlags& program) {
  const std::string_view word = argument.substr(0, argument.find('='));
  if (!word.starts_with('-') || word.size() > 24 || detail::has_word(program.help, word)) return {};
  for (const Flag& flag : flags_of_run) {
    if (word == flag.name) return {};
    if (!word.starts_with("--")) {
      if (flag.name.substr(1) == word) return flag.name;  // one dash in place of two
      continue;
    }
    const std::size_t most = flag.name.size() > 10 ? 2 : 1;
    if (detail::distance(word.substr(2), flag.name.substr(2)) <= most) return flag.name;
  }
  return {};
}

}  // namespace pdp::launch
