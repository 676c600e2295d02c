// What the benchmarks share: the clock, the statistic, and a core for each rank.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace bench {

inline double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// A rank on a core of its own, where there are enough. `thread`: 0 for the caller, which is the rank.
inline void pin(int rank, int size, pid_t thread = 0) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || size > CPU_COUNT(&allowed)) return;
  for (int cpu = 0, left = rank; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && left-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(thread, sizeof one, &one);
      return;
    }
  }
}

/// The process's other threads on the core of the next rank; before the rank itself is pinned. For Gloo, whose thread spins while the rank
/// holds a connection, which on one core lasts until the kernel lets the rank run again: milliseconds.
inline void pin_others(int rank, int size) {
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"})
    if (const pid_t thread = std::stoi(task.path().filename()); thread != gettid()) pin((rank + 1) % size, size, thread);
}

}  // namespace bench
