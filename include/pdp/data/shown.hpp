#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace pdp::data::detail {

/// Returns a name from a file so that it fits a message: at most 80 characters, control characters replaced by question marks.
inline std::string shown(std::string_view name) {
  constexpr std::size_t most = 80;
  std::string fit{name.substr(0, most)};
  std::ranges::replace_if(
      fit, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return name.size() > most ? fit + "..." : fit;
}

}  // namespace pdp::data::detail
