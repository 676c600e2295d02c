#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include <pdp/comm/communicator.hpp>

namespace pdp {

/// A line on standard output, from rank 0 alone, at once.
template <comm::Group C, class... Args>
void print(const C& world, fmt::format_string<Args...> format, Args&&... args) {
  if (world.rank() != 0) return;
  fmt::print(stdout, format, std::forward<Args>(args)...);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace pdp
