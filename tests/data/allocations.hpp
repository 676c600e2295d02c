#pragma once

#include <atomic>

/// What operator new has given out in this executable, on all of its threads; loader_allocation_test.cpp counts.
namespace allocations {

inline std::atomic<long> count = 0;
inline std::atomic<long> bytes = 0;

}  // namespace allocations
