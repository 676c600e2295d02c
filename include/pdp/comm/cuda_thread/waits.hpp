#pragma once

/// Waiting for a rank's calls, and the deadline of a wait.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/cuda_thread/rank.hpp>
#include <pdp/comm/os/waiting.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::cuda_thread {

inline bool Rank::advance() {
  check();
  bool moved = false;
  for (Group* const group : groups_) moved = group->advance() || moved;
  return moved;
}

inline bool Rank::has_come(Call& call, Call::State state) {
  return call.state >= state || (call.state == Call::State::closed && call.group->look(call));
}

inline void Rank::wait(Call& call, Call::State state) {
  constexpr std::chrono::milliseconds awake{1};
  TimePoint begin = TimePoint::max();  // the clock is not read unless there is something to wait for
  for (Waiting waiting;;) {
    const std::uint32_t seen = seat().bell.rings();
    const bool moved = advance();
    if (has_come(call, state)) return;
    if (moved) continue;
    const TimePoint now = Clock::now();
    if (begin == TimePoint::max()) begin = now;
    if (now - begin >= deadline_) fail(timeout_of(call));
    if (call.state < Call::State::closed)
      seat().bell.wait(seen, later(begin, deadline_));
    else if (waiting.look_again())
      continue;
    else if (now - begin < awake)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
}

inline bool Rank::done(Call& call) {
  try {
    advance();
    return has_come(call, Call::State::complete);
  } catch (const CommunicationError&) {
    return true;
  }
}

inline void Rank::finish(Call& call) {
  wait(call, Call::State::complete);
  rest(call);
}

inline void Rank::finish_on(Call& call, cudaStream_t stream) {
  wait(call, Call::State::closed);
  const cuda::OnDevice on{device()};
  if (const cudaError_t result = cudaStreamWaitEvent(stream, call.through, 0); result != cudaSuccess)
    fail({Failure::Kind::lost, number_,
          text("rank ", number_, ": ", describe(call.envelope), ": cudaStreamWaitEvent failed: ", cudaGetErrorString(result))});
  rest(call);
}

inline void Rank::abandon(Call& call) noexcept {
  if (world_->failure() == nullptr && done(call) && world_->failure() == nullptr) return rest(call);
  end({Failure::Kind::lost, number_,
       text("rank ", number_, " abandoned ", describe(call.envelope), " before it was complete; the error of rank ", number_,
            " says why")});
}

inline Failure Rank::timeout_of(const Call& call) const {
  const auto milliseconds = std::lround(std::chrono::duration<double>(deadline_).count() * 1000);
  if (call.state == Call::State::closed)
    return {Failure::Kind::timeout, number_,
            text("rank ", number_, " waited ", milliseconds, " ms for the GPUs to complete ", describe(call.envelope),
                 ", which is queued behind earlier work of the ranks' streams; either a stream waits for something else, or the call ",
                 "needs a longer deadline (PDP_DEADLINE=SECONDS)")};
  return {Failure::Kind::timeout, number_,
          text("rank ", number_, " waited ", milliseconds, " ms for ", describe(call.envelope), " and heard nothing from rank ",
               call.group->missing(call),
               "; either that rank makes other calls or none, or the call needs a longer deadline (PDP_DEADLINE=SECONDS)")};
}

}  // namespace pdp::comm::cuda_thread
