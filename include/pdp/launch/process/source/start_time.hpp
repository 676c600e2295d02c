#pragma once

/// Definitions for pdp/launch/process/start_time.hpp; see pdp/core/separate_compilation.hpp.

#include <time.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/start_time.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

PDP_INLINE double machine_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return as_double(now.tv_sec) + 1e-9 * as_double(now.tv_nsec);
}

PDP_INLINE double start_time(const Variables& environment) {
  if (const char* words = environment("PDP_STARTED"); words != nullptr)
    if (const auto found = read_number<std::int64_t>(words); found && *found >= 0) return 1e-3 * as_double(*found);
  std::ifstream file{"/proc/self/stat"};
  std::string words;
  std::getline(file, words);
  std::size_t at = words.rfind(')');  // the name of the program may hold spaces
  if (at == std::string::npos) return machine_time();
  constexpr int fields_between = 20;  // the number of the field is 22, and the name is number 2
  for (int field = 0; field < fields_between && at != std::string::npos; ++field) at = words.find(' ', at + 1);
  if (at == std::string::npos) return machine_time();
  const auto ticks = read_number<std::int64_t>(words.substr(at + 1, words.find(' ', at + 1) - at - 1));
  return ticks ? as_double(*ticks) / as_double(::sysconf(_SC_CLK_TCK)) : machine_time();
}

}  // namespace pdp::launch
