#pragma once

/// Definitions for pdp/data/shown.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/shown.hpp>

namespace pdp::data::detail {

PDP_INLINE std::string shown(std::string_view name) {
  constexpr std::size_t most = 80;
  std::string fit{name.substr(0, most)};
  std::ranges::replace_if(
      fit, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return name.size() > most ? fit + "..." : fit;
}

}  // namespace pdp::data::detail
