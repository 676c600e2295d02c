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

/// A call of one rank. It does not move, and is used again with its events, so a call like an earlier one makes nothing new.
struct Call {
  enum class State : std::uint8_t {
    issued,   // NCCL has it, but may not have put it on the stream
    running,  // on the stream, with its end behind it
    complete,
  };

  Envelope envelope;  // what the call is, for errors
  int peer = -1;      // of a message, in the group
  State state = State::complete;

  cudaEvent_t ready = nullptr;  // what the caller's stream held before the call
  cudaEvent_t end = nullptr;
};

/// What the groups of one rank have in common: its device, its calls, and the error that has ended the world, if there is one.
class World {
 public:
  /// `own`: whether what is in flight can be aborted.
  World(int rank, int size, int device, cudaStream_t caller, bool own)
      : rank_{rank}, size_{size}, device_{device}, caller_{caller}, own_{own}, staging_{device, size} {}
  World(World&&) = delete;
  ~World();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int device() const { return device_; }
  /// Whether its communicators are pdp's.
  [[nodiscard]] bool is_own() const { return own_; }
  [[nodiscard]] const Staging& staging() const { return staging_; }
  /// The stream whose work each call comes after.
  [[nodiscard]] cudaStream_t caller() const { return caller_; }
  void caller(cudaStream_t stream) { caller_ = stream; }
  [[nodiscard]] Duration deadline() const { return deadline_; }
  void deadline(Duration duration) { deadline_ = duration; }

  /// How long a group waits for the other ranks when it ends: no longer where that was in vain for another one.
  [[nodiscard]] Duration patience() const { return is_patient_ ? deadline_ : Duration{}; }
  void lose_patience() { is_patient_ = false; }

  [[nodiscard]] bool failed() const { return failure_ != nullptr; }
  /// Whether calls may be in flight that can be neither waited for nor aborted.
  [[nodiscard]] bool may_be_at_work() const { return failed() && !own_; }
  /// Throws what has ended the world.
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  /// The same, after a look at what NCCL says of all that is in flight: nobody else asks for calls that a stream waits for.
  void progress();
  void abort(const std::string& reason) { end(std::make_exception_ptr(PeerLost{rank_, reason})); }
  /// Ends the world of this rank: what is in flight is aborted. The first error stays.
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

  /// Between the two, NCCL gathers calls.
  void open();
  ncclResult_t close();
  /// The same for calls of any groups of this rank, as its user asks for it. The two may be nested.
  void begin_together();
  void end_together();
  [[nodiscard]] bool together() const { return depth_ > 0; }

 private:
  /// Waits for calls that were aborted, for 5 s at most: whoever is told of the failure may let go of their memory. Those of a graph are on
  /// the stream that it was launched on, which whoever lets go of their memory waits for.
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
