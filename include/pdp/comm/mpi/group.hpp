#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/mpi/world.hpp>
#include <pdp/comm/os/waiting.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::mpi {

/// An MPI communicator that only pdp uses, and this rank's calls in it.
class Group {
 public:
  /// Takes ownership of the communicator.
  Group(std::shared_ptr<World> world, MPI_Comm comm) : world_{std::move(world)}, comm_{comm} {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    int found = 0;
    int* largest = nullptr;
    MPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&largest), &found);
    if (found != 0) own_tag_ = *largest;
  }
  Group(Group&&) = delete;
  /// Frees the communicator, which all ranks must do together. Does not free it if the world has failed or MPI is finalised.
  ~Group() {
    if (!world_->failure && is_running()) MPI_Comm_free(&comm_);
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  [[nodiscard]] World& world() const { return *world_; }
  [[nodiscard]] const std::shared_ptr<World>& shared_world() const { return world_; }
  /// Checks a request. Throws ConfigError or ShapeError if it is invalid. The returned shards are valid until the next check.
  [[nodiscard]] CheckedRequest check(const Request& request) { return CallChecks{rank_, size_}.check(request, begins_); }
  /// Returns the tag of messages that belong to a collective: the largest tag of MPI. Users' tags are below it.
  [[nodiscard]] int own_tag() const { return own_tag_; }

  /// Returns an idle call, to be filled in and started. Throws if the world has failed.
  Call& fresh(bool blocking) {
    world_->check();
    Call& call = world_->fresh();
    call.reset(blocking);
    return call;
  }

  /// Calls one of two MPI functions: `blocking`, which returns when the call is complete on this rank, or `in_flight`, which returns a
  /// request.
  template <class Blocking, class InFlight, class... Arguments>
  void carry_out(Call& call, const char* function, Blocking blocking, InFlight in_flight, Arguments... arguments) {
    check(call, function,
          call.blocking ? blocking(arguments..., comm_) : in_flight(arguments..., comm_, &call.requests.emplace_back(MPI_REQUEST_NULL)));
  }
  void send(Call& call, const ErasedSpan& memory, int peer, int tag);
  void receive(Call& call, const ErasedSpan& memory, int peer, int tag);

  /// Returns whether the call is complete. Throws if it has failed, which ends the world.
  bool look(Call& call);
  /// Waits until the call is complete, and takes it back.
  void finish(Call& call);
  /// Returns whether finish() would return or throw at once.
  bool done(Call& call);
  /// Takes back a call that its owner does not wait for. If the call is not complete, ends the job. If an exception is in flight, ends only
  /// the world.
  void abandon(Call& call) noexcept;
  /// Prints the reason and ends all ranks of the job with exit code 1.
  [[noreturn]] void end_job(const std::string& reason) const;

  void check(const Call& call, const char* function, int code) {
    if (code != MPI_SUCCESS) [[unlikely]]
      fail(call, function, code);
  }

 private:
  [[noreturn]] void fail(const Call& call, const char* function, int code) {
    world_->fail(
        CommunicationError{text("rank ", rank_, ": ", describe(call.envelope), ": ", function, " failed: ", describe_error(code))});
  }
  [[noreturn]] void fail_in_flight(const Call& call, int code);
  [[noreturn]] void fail_length(const Call& call, const Call::Expected& expected, MPI_Count found);
  [[noreturn]] void time_out(Call& call);
  void conclude(Call& call);
  static MPI_Count bytes_of(const MPI_Status& status) {
    MPI_Count bytes = MPI_UNDEFINED;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    return bytes;
  }

  std::shared_ptr<World> world_;
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  int own_tag_ = 32767;  // MPI guarantees tags up to this one
  std::array<CallChecks::Begins, 2> begins_;
};

// The functions that WorkHandle requires.
inline bool is_done(Group& group, Call& call) { return group.done(call); }
inline void finish(Group& group, Call& call) { group.finish(call); }
inline void drop(Group& group, Call& call) noexcept { group.abandon(call); }

inline void Group::send(Call& call, const ErasedSpan& memory, int peer, int tag) {
  MPI_Request& request = call.requests.emplace_back(MPI_REQUEST_NULL);
  const MPI_Datatype type = type_of(memory.type);
  if (memory.count <= as_size(world_->most))
    return check(call, "MPI_Isend", MPI_Isend(memory.data, as_int(memory.count), type, peer, tag, comm_, &request));
  const LargeType all{type, memory.element, memory.count, world_->most};
  check(call, "MPI_Isend", MPI_Isend(memory.data, 1, all.get(), peer, tag, comm_, &request));
}

inline void Group::receive(Call& call, const ErasedSpan& memory, int peer, int tag) {
  call.expected.push_back({.request = call.requests.size(), .bytes = memory.bytes(), .peer = peer});
  MPI_Request& request = call.requests.emplace_back(MPI_REQUEST_NULL);
  const MPI_Datatype type = type_of(memory.type);
  if (memory.count <= as_size(world_->most))
    return check(call, "MPI_Irecv", MPI_Irecv(memory.data, as_int(memory.count), type, peer, tag, comm_, &request));
  const LargeType all{type, memory.element, memory.count, world_->most};
  check(call, "MPI_Irecv", MPI_Irecv(memory.data, 1, all.get(), peer, tag, comm_, &request));
}

inline bool Group::look(Call& call) {
  if (call.complete) return true;
  const std::size_t count = call.requests.size();
  if (count > 0) {
    call.statuses.resize(count);
    int all = 0;
    const int code = count == 1 ? MPI_Test(call.requests.data(), &all, call.statuses.data())
                                : MPI_Testall(as_int(count), call.requests.data(), &all, call.statuses.data());
    if (code != MPI_SUCCESS) [[unlikely]]
      fail_in_flight(call, code);
    if (all == 0) return false;
    for (const Call::Expected& message : call.expected)
      if (const MPI_Count found = bytes_of(call.statuses[message.request]); found != static_cast<MPI_Count>(message.bytes)) [[unlikely]]
        fail_length(call, message, found);
  }
  conclude(call);
  return true;
}

/// Completes a call that MPI has carried out: copies the result from scratch memory, and divides the sum of an average.
inline void Group::conclude(Call& call) {
  call.complete = true;
  if (call.in_scratch) std::memcpy(call.result.data, call.scratch.data(), call.result.bytes());
  if (call.divide != nullptr) call.divide(call.result.data, call.result.bytes(), size_);
}

inline void Group::finish(Call& call) {
  world_->check();
  TimePoint until = TimePoint::max();  // the clock is not read unless there is something to wait for
  for (Waiting waiting; !look(call);) {
    if (waiting.look_again()) continue;
    sched_yield();  // MPI makes progress only while this rank polls
    const TimePoint now = Clock::now();
    if (until == TimePoint::max()) until = later(now, world_->deadline);
    if (now >= until) time_out(call);
  }
  world_->recycle(call);
}

inline bool Group::done(Call& call) {
  if (world_->failure) return true;
  try {
    return look(call);
  } catch (const CommunicationError&) {
    return true;
  }
}

inline void Group::abandon(Call& call) noexcept {
  if (world_->failure || !is_running()) return;  // the world has ended; its requests stay in flight
  if (done(call)) return world_->recycle(call);
  const std::string reason = text("rank ", rank_, " abandoned ", describe(call.envelope),
                                  " before it was complete, so its buffer could be written after it is freed");
  // If an exception is in flight, the user must see it, and the code that handles it ends the job. Until then every call on this rank
  // throws.
  if (std::uncaught_exceptions() == 0) end_job(reason);
  world_->failure = std::make_exception_ptr(CommunicationError{reason});
}

inline void Group::end_job(const std::string& reason) const {
  std::fflush(stdout);
  std::fprintf(stderr, "rank %d ends the job: %s\n", rank_, printable(reason).c_str());
  abort_job(1);
}

inline void Group::fail_in_flight(const Call& call, int code) {
  int error = MPI_SUCCESS;
  const auto class_of = [](int of) {
    int found = MPI_SUCCESS;
    MPI_Error_class(of, &found);
    return found;
  };
  const bool each_has_its_own = call.requests.size() > 1 && class_of(code) == MPI_ERR_IN_STATUS;
  std::size_t failed = 0;
  if (each_has_its_own)
    while (failed + 1 < call.statuses.size() &&
           (call.statuses[failed].MPI_ERROR == MPI_SUCCESS || class_of(call.statuses[failed].MPI_ERROR) == MPI_ERR_PENDING))
      ++failed;
  error = each_has_its_own ? call.statuses[failed].MPI_ERROR : code;
  if (class_of(error) == MPI_ERR_TRUNCATE)
    for (const Call::Expected& message : call.expected)
      if (message.request == failed)
        fail_length(call, message, std::max(bytes_of(call.statuses[failed]), static_cast<MPI_Count>(message.bytes)));
  fail(call, call.requests.size() > 1 ? "MPI_Testall" : "MPI_Test", error);
}

/// Ends the world because a message has another length than expected. `found`: its length in bytes; the expected length if the message is
/// longer but MPI does not say by how much.
inline void Group::fail_length(const Call& call, const Call::Expected& expected, MPI_Count found) {
  const auto wanted = static_cast<MPI_Count>(expected.bytes);
  const std::string length = found != wanted ? text("has ", found) : std::string{"is longer"};
  world_->fail(
      MismatchedCollective{text("rank ", rank_, " expected a message of ", expected.bytes, " bytes from rank ", expected.peer, " (",
                                describe(call.envelope), "), but it ", length, "; both ranks must give it the same size and type")});
}

inline void Group::time_out(Call& call) {
  const double seconds = std::chrono::duration<double>(world_->deadline).count();
  // Cancels receives, so that no message arrives in memory that its owner may have freed after the Timeout. A collective cannot be
  // cancelled.
  for (const Call::Expected& message : call.expected) MPI_Cancel(&call.requests[message.request]);
  int ignored = 0;
  for (int look = 0; look < 100 && ignored == 0; ++look)
    if (MPI_Testall(as_int(call.requests.size()), call.requests.data(), &ignored, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
  world_->fail(Timeout{text("rank ", rank_, " waited ", std::lround(seconds * 1000), " ms for ", describe(call.envelope),
                            call.peer < 0 ? "; either a rank" : text(" and heard nothing from rank ", call.peer, "; either that rank"),
                            " makes other calls or none, or the call needs a longer deadline (PDP_DEADLINE=SECONDS)")});
}

}  // namespace pdp::comm::mpi
