#pragma once

/// Definitions for pdp/checkpoint/save.hpp; see pdp/core/separate_compilation.hpp.

#include <functional>
#include <future>
#include <string>
#include <utility>

#include <pdp/checkpoint/save.hpp>
#include <pdp/comm/os/blocked_signals.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::checkpoint {

PDP_INLINE std::future<std::string> start_writing(Writing writing, std::function<std::string()> write) {
  if (writing == Writing::now) return std::async(std::launch::deferred, std::move(write));
  const comm::BlockedSignals blocked;  // the thread is not to take a signal of the program
  return std::async(std::launch::async, std::move(write));
}

}  // namespace pdp::checkpoint
