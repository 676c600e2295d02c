// Shared by the benchmarks: the clock, the median, and the pinning of ranks to cores.
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

/// Pins a rank to its own core, if there are enough cores. `thread` is the thread to pin; 0 is the caller.
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

/// Pins the process's other threads to the core of the next rank. Call it before pin(), which narrows the cores to choose from.
///
/// Gloo needs this: its thread spins while the rank's own thread has a connection locked. If both threads shared a core, the spin would
/// last until the kernel runs the rank again, which takes milliseconds.
inline void pin_others(int rank, int size) {
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"})
    if (const pid_t thread = std::stoi(task.path().filename()); thread != gettid()) pin((rank + 1) % size, size, thread);
}

}  // namespace bench
