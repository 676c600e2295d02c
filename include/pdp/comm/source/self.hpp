#pragma once

/// Definitions for pdp/comm/self.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE bool SelfTransport::progress() {
  if (failure_) failure_->raise();
  return false;
}
PDP_INLINE void SelfTransport::wait(TimePoint until) { std::this_thread::sleep_until(std::min(until, Clock::now() + Clock::slice)); }
PDP_INLINE void SelfTransport::fail(Failure failure) {
  if (!failure_) failure_ = std::make_unique<Failure>(std::move(failure));
}

PDP_INLINE Self::Self() : BasicCommunicator{Member{SelfTransport{}}} {}

static_assert(Communicator<Self> && HasReduceScatter<Self> && FailsFast<Self> && Alone<Self>);

}  // namespace pdp::comm
