#pragma once

/// The definitions of what pdp/train/print.hpp declares; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/train/print.hpp>

namespace pdp::detail {

PDP_INLINE void print_line(const std::string& line) {
  clear_terminal_line();
  write_standard_output(line + '\n');
}

}  // namespace pdp::detail
