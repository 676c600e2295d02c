#pragma once

#include <atomic>

/// Allocations of operator new in this executable, on all threads. loader_allocation_test.cpp counts them.
namespace allocations {

inline std::atomic<long> count = 0;
inline std::atomic<long> bytes = 0;

}  // namespace allocations
