#pragma once

/// Definitions for pdp/checkpoint/save.hpp; see pdp/core/separate_compilation.hpp.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <pdp/checkpoint/save.hpp>
#include <pdp/comm/os/blocked_signals.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::checkpoint {

struct WriteTask::State {
  std::future<std::string> text;  // its destructor waits for the thread
};

PDP_INLINE WriteTask::WriteTask() = default;
PDP_INLINE WriteTask::WriteTask(WriteTask&&) noexcept = default;
PDP_INLINE WriteTask& WriteTask::operator=(WriteTask&&) noexcept = default;
PDP_INLINE WriteTask::~WriteTask() = default;

PDP_INLINE WriteTask::WriteTask(Writing writing, std::function<std::string()> write) : state_{std::make_unique<State>()} {
  if (writing == Writing::now) {
    state_->text = std::async(std::launch::deferred, std::move(write));
  } else {
    const comm::BlockedSignals blocked;  // the thread is not to take a signal of the program
    state_->text = std::async(std::launch::async, std::move(write));
  }
}

PDP_INLINE bool WriteTask::is_busy() const {
  return state_ && state_->text.wait_for(std::chrono::seconds{0}) == std::future_status::timeout;
}

PDP_INLINE std::string WriteTask::take() {
  const std::unique_ptr<State> done = std::move(state_);
  return done->text.get();
}

}  // namespace pdp::checkpoint
