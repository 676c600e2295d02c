#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/nccl/handle.hpp>
#include <pdp/comm/nccl/world.hpp>
#include <pdp/comm/os/waiting.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

/// An NCCL communicator, the stream on which its calls run, and this rank's calls in it.
///
/// NCCL may have to connect ranks before it enqueues a call, and does so in a thread of its own. Until the call is on the stream, the group
/// makes no other NCCL call and records no event.
class Group {
 public:
  /// `ranks`: the world ranks of the members, in the order of the group.
  Group(std::shared_ptr<World> world, Handle handle, std::vector<int> ranks, int rank);
  Group(Group&&) = delete;
  ~Group();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return as_int(ranks_.size()); }
  [[nodiscard]] World& world() const { return *world_; }
  [[nodiscard]] World& common() const { return *world_; }
  [[nodiscard]] const std::shared_ptr<World>& shared_world() const { return world_; }
  [[nodiscard]] int rank_in_world(int rank) const { return ranks_[as_size(rank)]; }
  [[nodiscard]] ncclComm_t comm() const { return handle_.get(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// Throws ConfigError for pageable host memory and for memory of another device.
  void check_memory(Verb verb, const ErasedSpan& memory) const;

  /// Starts a call: `start(call)` makes its NCCL calls on stream(), after the earlier work of the caller's stream. `peer`: of a message, a
  /// rank of the group; else -1.
  template <class F>
  Call& call(const Envelope& envelope, int peer, F&& start);
  /// Gathers `mine` of all ranks into `all`, in the order of ranks. Both lie in host memory. Blocks until the call is complete.
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all, Verb verb);
  /// Returns a new communicator of the ranks that pass the same colour, which must be 0 or more.
  [[nodiscard]] Handle split(int color, int key);

  /// Checks the result of an NCCL function that was called for `call`. An error ends the world and is thrown.
  void check(const Call& call, const char* function, ncclResult_t result) {
    if (result == ncclInProgress)
      in_progress_ = true;
    else if (result != ncclSuccess) [[unlikely]]
      fail(call, function, result);
  }
  void check(const Call& call, const char* function, cudaError_t result) {
    if (result != cudaSuccess) [[unlikely]]
      fail(call, function, result);
  }

  /// Throws the error that NCCL reports for the calls in flight, if any. Such an error ends the world.
  void check_in_flight();
  /// Returns whether the call is complete. Throws if it has failed, which ends the world.
  [[nodiscard]] bool look(Call& call);
  /// Returns whether the call is on the stream, followed by its event `end`.
  [[nodiscard]] bool is_placed(Call& call);
  /// Returns whether finish() would return or throw at once.
  [[nodiscard]] bool done(Call& call);
  /// Waits until the call is complete, and takes it back.
  void finish(Call& call);
  /// Makes `stream` wait for the call. Takes the call back once it is on the group's stream.
  void finish_on(Call& call, cudaStream_t stream);
  /// Takes back a call that its owner does not wait for. Ends the world if the call is not complete.
  void abandon(Call& call) noexcept;

  /// Waits until NCCL has enqueued all calls of this group. NCCL accepts no other call before that. Throws ConfigError inside grouped().
  void synchronise();
  /// Notes that NCCL is still enqueuing calls that were started together.
  void in_progress() { in_progress_ = !launching_.empty(); }
  /// Returns whether NCCL has enqueued all calls of this group. If so, records their `end` events.
  bool is_synchronised();
  /// Begins to abort the calls in flight. The group cannot be used afterwards.
  void abort() noexcept {
    launching_.clear();
    in_progress_ = false;
    handle_.abort();
  }

  /// Registers memory with NCCL until withdraw(), or until the group ends. Returns the registration; null if NCCL does not register the
  /// memory.
  [[nodiscard]] void* enroll(void* memory, std::size_t bytes);
  void withdraw(void* registration) noexcept;

 private:
  Call& fresh(const Envelope& envelope, int peer = -1);
  /// Records the call's `ready` event after the earlier work of the caller's stream.
  void mark_ready(const Call& call);
  void synchronise(const Call& call) {
    wait(call, [this] { return is_synchronised(); });
  }
  template <class Look>
  void wait(const Call& call, const Look& look);
  /// Throws ConfigError inside grouped(), in which no call can be waited for.
  void refuse_together(const Envelope& envelope) const;

  /// Returns the world rank that a call waits for, if only one is possible, else -1.
  [[nodiscard]] int awaited(const Call& call) const { return call.peer >= 0 ? rank_in_world(call.peer) : awaited(); }
  [[nodiscard]] int awaited() const { return size() == 2 ? rank_in_world(1 - rank_) : -1; }
  [[noreturn]] void fail(const Call& call, const char* function, ncclResult_t result) {
    fail(text(describe(call.envelope), ": ", function), awaited(call), result);
  }
  [[noreturn]] void fail(const std::string& during, int other, ncclResult_t result);
  [[noreturn]] void fail(const Call& call, const char* function, cudaError_t result) {
    world_->fail(CommunicationError{
        text("rank ", world_->rank(), ": ", describe(call.envelope), ": ", function, " failed: ", cudaGetErrorString(result))});
  }
  [[noreturn]] void time_out(const Call& call);

  std::shared_ptr<World> world_;
  Handle handle_;
  std::vector<int> ranks_;
  int rank_;
  std::unique_ptr<ncclComm_t> made_;  // NCCL's thread writes the result of a split here, even after this rank's wait has timed out
  cudaStream_t stream_ = nullptr;
  std::vector<Call*> launching_;  // the calls in the state `issued`
  bool in_progress_ = false;
  std::vector<void*> registrations_;
  int exceptions_ = std::uncaught_exceptions();
};

inline Group::Group(std::shared_ptr<World> world, Handle handle, std::vector<int> ranks, int rank)
    : world_{std::move(world)}, handle_{std::move(handle)}, ranks_{std::move(ranks)}, rank_{rank} {
  const OnDevice on{world_->device()};
  // Non-blocking: this stream and the default stream do not wait for each other implicitly.
  check_cuda("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  world_->add(*this);
}

/// If an exception destroys the group, aborts its calls instead of waiting: other ranks may wait for calls that this rank will not make.
inline Group::~Group() {
  if (std::uncaught_exceptions() > exceptions_) handle_.abort();
  while (!registrations_.empty()) withdraw(registrations_.back());
  world_->remove(*this);
  handle_.close(world_->patience());
  const bool is_through = handle_.join();  // if true, NCCL has also finished enqueuing calls, and a split
  if (!is_through) world_->lose_patience();
  if (made_ && (!is_through || world_->may_be_at_work()))
    static_cast<void>(made_.release());
  else if (made_)
    Handle{*made_, world_->device(), true}.abort();
  if (is_through) cudaStreamDestroy(stream_);
}

inline Call& Group::fresh(const Envelope& envelope, int peer) {
  world_->check();
  Call& call = world_->fresh();
  call.envelope = envelope;
  call.peer = peer;
  return call;
}

inline void Group::mark_ready(const Call& call) {
  const OnDevice on{world_->device()};  // a null caller is the default stream of this device
  check(call, "cudaEventRecord", cudaEventRecord(call.ready, world_->caller()));
}

template <class F>
Call& Group::call(const Envelope& envelope, int peer, F&& start) {
  Call& call = fresh(envelope, peer);
  if (!world_->together()) synchronise(call);
  mark_ready(call);
  check(call, "cudaStreamWaitEvent", cudaStreamWaitEvent(stream_, call.ready, 0));
  call.state = Call::State::issued;
  launching_.push_back(&call);
  start(call);
  if (!world_->together()) is_synchronised();
  return call;
}

inline void Group::synchronise() {
  refuse_together({.verb = Verb::all_gather});
  if (!launching_.empty()) synchronise(*launching_.front());
}

inline bool Group::is_synchronised() {
  if (launching_.empty()) return true;
  if (in_progress_) {
    const ncclResult_t state = handle_.state();
    if (state == ncclInProgress) return false;
    in_progress_ = false;
    if (state != ncclSuccess) fail(*launching_.front(), "NCCL", state);
  }
  for (Call* const call : launching_) {
    check(*call, "cudaEventRecord", cudaEventRecord(call->end, stream_));
    call->state = Call::State::running;
  }
  launching_.clear();
  return true;
}

inline void Group::check_in_flight() {
  if (comm() == nullptr) return;
  const ncclResult_t state = handle_.state();
  if (state != ncclSuccess && state != ncclInProgress) fail("calls in flight: NCCL", awaited(), state);
}

inline bool Group::is_placed(Call& call) {
  if (call.state != Call::State::issued) return true;
  return !world_->together() && is_synchronised();
}

inline bool Group::look(Call& call) {
  if (call.state == Call::State::complete) return true;
  if (!is_placed(call)) return false;
  const cudaError_t found = cudaEventQuery(call.end);
  if (found == cudaErrorNotReady) {
    cudaGetLastError();  // clears the error, so that a later check does not report it
    return false;
  }
  check(call, "cudaEventQuery", found);
  call.state = Call::State::complete;
  return true;
}

/// Polls NCCL for errors while it waits, because NCCL does not report them by itself.
template <class Look>
void Group::wait(const Call& call, const Look& look) {
  constexpr std::chrono::milliseconds awake{1};
  TimePoint begin = TimePoint::max();  // the clock is not read unless there is something to wait for
  for (Waiting waiting; !look();) {
    if (waiting.look_again()) continue;
    const TimePoint now = Clock::now();
    if (begin == TimePoint::max()) begin = now;
    if (const ncclResult_t state = handle_.state(); state != ncclSuccess && state != ncclInProgress) fail(call, "NCCL", state);
    if (now - begin >= world_->deadline()) time_out(call);
    if (now - begin < awake)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
}

inline void Group::refuse_together(const Envelope& envelope) const {
  if (world_->together())
    throw ConfigError{text("rank ", world_->rank(), " waits for ", describe(envelope),
                           " inside grouped(), whose calls begin only when it ends; wait after grouped()")};
}

inline void Group::finish(Call& call) {
  world_->check();
  refuse_together(call.envelope);
  wait(call, [&] { return look(call); });
  world_->recycle(call);
}

inline void Group::finish_on(Call& call, cudaStream_t stream) {
  world_->check();
  refuse_together(call.envelope);
  wait(call, [&] { return is_placed(call); });  // the event of a call that is being captured must not be queried
  const OnDevice on{world_->device()};
  check(call, "cudaStreamWaitEvent", cudaStreamWaitEvent(stream, call.end, 0));
  world_->recycle(call);
}

inline bool Group::done(Call& call) {
  if (world_->failed()) return true;
  try {
    return look(call);
  } catch (const CommunicationError&) {
    return true;
  }
}

inline void Group::abandon(Call& call) noexcept {
  const bool complete = !world_->failed() && done(call) && !world_->failed();
  if (!complete)
    world_->end(std::make_exception_ptr(
        PeerLost{world_->rank(), text("rank ", world_->rank(), " abandoned ", describe(call.envelope),
                                      " before it was complete, so its buffer could be written after it is freed")}));
  world_->recycle(call);
}

}  // namespace pdp::comm::nccl
