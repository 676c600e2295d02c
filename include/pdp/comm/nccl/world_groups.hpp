#pragma once

/// Functions of a World that use its groups: its end, and calls that start together.

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/nccl/world.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

inline void World::progress() {
  check();
  for (Group* const group : groups_) group->check_in_flight();
}

inline void World::end(std::exception_ptr failure) noexcept {
  if (failure_) return;
  failure_ = std::move(failure);
  for (; depth_ > 0; --depth_) ncclGroupEnd();
  for (Group* const group : groups_) group->abort();
  if (own_) quiesce();
}

inline void World::quiesce() const noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const bool is_known = cudaStreamIsCapturing(caller_, &status) == cudaSuccess;
  cudaGetLastError();
  if (!is_known || status != cudaStreamCaptureStatusNone) return;
  const TimePoint until = Clock::now() + std::chrono::seconds{5};
  for (const Group* const group : groups_)
    while (cudaStreamQuery(group->stream()) == cudaErrorNotReady && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds{50});
  cudaGetLastError();
}

inline void World::open() {
  check();
  const ncclResult_t result = ncclGroupStart();
  if (result != ncclSuccess) fail(CommunicationError{text("rank ", rank_, ": ncclGroupStart failed: ", ncclGetErrorString(result))});
  ++depth_;
}

inline ncclResult_t World::close() {
  --depth_;
  return ncclGroupEnd();
}

inline void World::begin_together() {
  check();
  if (!together())
    for (Group* const group : groups_) group->synchronise();
  open();
}

inline void World::end_together() {
  check();
  const ncclResult_t result = close();
  if (result != ncclSuccess && result != ncclInProgress)
    fail(CommunicationError{text("rank ", rank_, ": the calls of grouped(): ncclGroupEnd failed: ", ncclGetErrorString(result))});
  if (together()) return;
  for (Group* const group : groups_) {
    if (result == ncclInProgress) group->in_progress();
    group->is_synchronised();
  }
}

}  // namespace pdp::comm::nccl
