#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/nccl/library.hpp>
#include <pdp/comm/nccl/staging.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::nccl {

class Group;

/// A call of one rank. It never moves, and is reused with its events, so repeating a call allocates nothing.
struct Call {
  enum class State : std::uint8_t {
    issued,   // passed to NCCL, but perhaps not on the stream yet
    running,  // on the stream, followed by the event `end`
    complete,
  };

  Envelope envelope;  // describes the call in errors
  int peer = -1;      // for a message: a rank of the group; else -1
  State state = State::complete;

  cudaEvent_t ready = nullptr;  // marks the earlier work of the caller's stream
  cudaEvent_t end = nullptr;    // marks the end of the call on its stream
};

/// The state that all groups of one rank share: its device, its calls, and the error that has ended the world, if any.
class World {
 public:
  /// `own`: pdp owns the communicators and can abort calls in flight.
  World(int rank, int size, int device, cudaStream_t caller, bool own)
      : rank_{rank}, size_{size}, device_{device}, caller_{caller}, own_{own}, staging_{device, size} {}
  World(World&&) = delete;
  ~World();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int device() const { return device_; }
  /// Returns whether pdp owns the communicators.
  [[nodiscard]] bool is_own() const { return own_; }
  [[nodiscard]] const Staging& staging() const { return staging_; }
  /// Returns the stream that calls are ordered after.
  [[nodiscard]] cudaStream_t caller() const { return caller_; }
  void caller(cudaStream_t stream) { caller_ = stream; }
  [[nodiscard]] Duration deadline() const { return deadline_; }
  void deadline(Duration duration) { deadline_ = duration; }

  /// Returns how long a group waits for the other ranks when it ends: the deadline, or zero after such a wait has failed.
  [[nodiscard]] Duration patience() const { return is_patient_ ? deadline_ : Duration{}; }
  void lose_patience() { is_patient_ = false; }

  [[nodiscard]] bool failed() const { return failure_ != nullptr; }
  /// Returns whether calls may be in flight that pdp can neither wait for nor abort.
  [[nodiscard]] bool may_be_at_work() const { return failed() && !own_; }
  /// Throws the error that has ended the world, if any.
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Throws the error that has ended the world, or an error that NCCL reports for calls in flight. Nothing else polls NCCL for calls that a
  /// stream waits for (Work::wait_on).
  void progress();
  void abort(const std::string& reason) { end(std::make_exception_ptr(PeerLost{rank_, reason})); }
  /// Ends the world on this rank and aborts its calls in flight. Only the first error is kept.
  void end(std::exception_ptr failure) noexcept;
  template <class E>
  [[noreturn]] void fail(const E& error) {
    end(std::make_exception_ptr(error));
    throw error;
  }

  [[nodiscard]] Call& fresh();
  void recycle(Call& call) { calls_.give_back(call); }

  void add(Group& group) { groups_.push_back(&group); }
  void remove(Group& group) { std::erase(groups_, &group); }

  /// Open and close a group call of NCCL (ncclGroupStart, ncclGroupEnd).
  void open();
  ncclResult_t close();
  /// Begin and end the calls of BasicCommunicator::grouped(), which may be of several groups. May be nested.
  void begin_together();
  void end_together();
  [[nodiscard]] bool together() const { return depth_ > 0; }

 private:
  /// Waits for aborted calls, 5 s at most, because a caller that catches the failure may free their memory. Does not wait for replayed
  /// calls: these run on the stream of their graph, and the caller must wait for that stream before it frees their memory.
  void quiesce() const noexcept;

  int rank_, size_, device_;
  cudaStream_t caller_;
  bool own_, is_patient_ = true;
  Staging staging_;
  Duration deadline_ = default_deadline;
  std::exception_ptr failure_;
  FreeList<Call> calls_;
  std::vector<Group*> groups_;
  int depth_ = 0;
};

inline Call& World::fresh() {
  return calls_.take([this](Call& call) {
    const OnDevice on{device_};
    check_cuda("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&call.ready, cudaEventDisableTiming));
    check_cuda("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&call.end, cudaEventDisableTiming));
  });
}

inline World::~World() {
  if (may_be_at_work()) staging_.leave();
  for (const Call& call : calls_.all())
    for (cudaEvent_t event : {call.ready, call.end})
      if (event != nullptr) cudaEventDestroy(event);
}

}  // namespace pdp::comm::nccl
