#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/standard_streams.hpp>

namespace pdp {

/// Prints a line on standard output, on rank 0 alone, at once. Throws FileError if it cannot be written. Clears a progress bar first.
template <comm::Group C, class... Args>
void print(const C& world, fmt::format_string<Args...> format, Args&&... args) {
  if (world.rank() != 0) return;
  const std::string line = fmt::format(format, std::forward<Args>(args)...) + '\n';
  clear_terminal_line();
  write_standard_output(line);
}

}  // namespace pdp
