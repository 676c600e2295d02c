#pragma once

#include <cstdint>
#include <string>

#include <pdp/rpc/codec.hpp>

namespace pdp::rpc {

/// The calls of one method, constructor or function by one rank, and those that it has run for other ranks. See Node::statistics().
struct MethodStatistics {
  std::string name;
  std::int64_t calls = 0;      // made by this rank
  std::int64_t bytes = 0;      // of their arguments
  double waiting_seconds = 0;  // in sync() and get() for their results
  std::int64_t runs = 0;       // on this rank
  double running_seconds = 0;  // calls that ran meanwhile, while a run waited, included
};
static_assert(Travels<MethodStatistics>);

}  // namespace pdp::rpc
