#pragma once

/// Definitions for pdp/train/print.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/train/print.hpp>

namespace pdp::detail {

PDP_INLINE void print_line(const std::string& line) {
  clear_terminal_line();
  write_standard_output(line + '\n');
}
PDP_INLINE void print_line(fmt::string_view format, fmt::format_args values) { print_line(fmt::vformat(format, values)); }

}  // namespace pdp::detail
