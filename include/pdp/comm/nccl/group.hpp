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

/// One communicator of NCCL, the stream on which its calls run, and the calls of this rank in it.
///
/// NCCL may need the other ranks before a call is on the stream (it connects two ranks when they first need it), and does so in a thread of
/// its own. Until then the group makes no other call of NCCL, and marks no end on the stream.
class Group {
 public:
  /// `ranks`: of the members, in the world.
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

  /// Throws ConfigError where the device does not reach the memory.
  void check_memory(Verb verb, const ErasedSpan& memory) const;

  /// Makes a call: `start` makes NCCL's calls for it, on stream(), after all that the caller's stream holds. `peer`: of a message.
  template <class F>
  Call& call(const Envelope& envelope, int peer, F&& start);
  /// Bytes of this rank's to all, from memory of the host to memory of the host.
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all, Verb verb);
  /// The communicator of the ranks that give the same colour, which is 0 or more.
  [[nodiscard]] Handle split(int color, int key);

  /// Of a call of NCCL's for `call`.
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

  /// Throws what NCCL says of the calls in flight, which ends the world.
  void check_in_flight();
  /// Whether the call is complete. Throws what went wrong, which ends the world.
  [[nodiscard]] bool look(Call& call);
  /// Whether the call is on the stream, with its end behind it.
  [[nodiscard]] bool is_placed(Call& call);
  /// Whether finish() would come back at once, with an error perhaps.
  [[nodiscard]] bool done(Call& call);
  /// Waits until the call is complete, and takes it back.
  void finish(Call& call);
  /// Lets `stream` wait until the call is complete, and takes it back.
  void finish_on(Call& call, cudaStream_t stream);
  /// Takes a call back whose owner does not wait for it.
  void abandon(Call& call) noexcept;

  /// Waits until NCCL has put on the stream all that it was told: it takes no other call of this group before.
  void synchronise();
  /// After calls that were started together, where NCCL is still at it.
  void in_progress() { in_progress_ = !launching_.empty(); }
  /// Whether NCCL has put on the stream all that it was told.
  bool is_synchronised();
  void abort() noexcept {
    launching_.clear();
    in_progress_ = false;
    handle_.abort();
  }

  /// What is registered with NCCL, until the group ends.
  [[nodiscard]] void* enroll(void* memory, std::size_t bytes);
  void withdraw(void* registration) noexcept;

 private:
  Call& fresh(const Envelope& envelope, int peer = -1);
  /// Marks on the caller's stream what the call comes after.
  void mark_ready(const Call& call);
  void synchronise(const Call& call) {
    wait(call, [this] { return is_synchronised(); });
  }
  template <class Look>
  void wait(const Call& call, const Look& look);
  void refuse_together(const Envelope& envelope) const;

  /// The only other rank of the world that a call can wait for, or -1.
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
  std::unique_ptr<ncclComm_t> made_;  // where a thread of NCCL's writes what a split makes, whoever has given up waiting for it
  cudaStream_t stream_ = nullptr;
  std::vector<Call*> launching_;  // issued
  bool in_progress_ = false;
  std::vector<void*> registrations_;
  int exceptions_ = std::uncaught_exceptions();
};

inline Group::Group(std::shared_ptr<World> world, Handle handle, std::vector<int> ranks, int rank)
    : world_{std::move(world)}, handle_{std::move(handle)}, ranks_{std::move(ranks)}, rank_{rank} {
  const OnDevice on{world_->device()};
  // Work on the default stream does not wait for it, nor it for that, unless a call says so.
  check_cuda("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  world_->add(*this);
}

/// Other ranks may still wait for what this one would have done when it leaves by an exception: then nothing is waited for.
inline Group::~Group() {
  if (std::uncaught_exceptions() > exceptions_) handle_.abort();
  while (!registrations_.empty()) withdraw(registrations_.back());
  world_->remove(*this);
  handle_.close(world_->patience());
  const bool is_through = handle_.join();  // with calls that it was putting on the stream, and with a split
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
  const OnDevice on{world_->device()};  // each device has a default stream
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
    cudaGetLastError();  // else whoever asks next takes it for an error of his own
    return false;
  }
  check(call, "cudaEventQuery", found);
  call.state = Call::State::complete;
  return true;
}

/// NCCL says nothing by itself: whoever waits asks whether something went wrong.
template <class Look>
void Group::wait(const Call& call, const Look& look) {
  constexpr std::chrono::milliseconds awake{1};
  TimePoint begin = TimePoint::max();  // the clock is not asked where nothing is waited for
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
                           " among calls that start together: none of them begins before the last one is made; wait after grouped()")};
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
  wait(call, [&] { return is_placed(call); });  // and no more: of a call that is being recorded nobody may ask whether it is complete
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
        PeerLost{world_->rank(), text("rank ", world_->rank(), " gave up ", describe(call.envelope),
                                      " while it was in flight, so that its memory would be written after its time")}));
  world_->recycle(call);
}

}  // namespace pdp::comm::nccl
