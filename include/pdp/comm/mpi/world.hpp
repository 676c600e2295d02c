#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/mpi/session.hpp>
#include <pdp/comm/mpi/types.hpp>

namespace pdp::comm::mpi {

/// A call that MPI carries out, and what is left to do after it. It is used again for later calls and keeps its memory, so a call like an
/// earlier one allocates nothing of ours.
struct Call {
  /// A message that must be as long as it was expected to be.
  struct Expected {
    std::size_t request = 0;  // its place among the requests
    std::size_t bytes = 0;
    int peer = -1;
  };

  Envelope envelope;  // what the call is, for errors
  int peer = -1;      // of a message
  bool blocking = false;
  bool complete = false;

  std::vector<MPI_Request> requests;  // of what is in flight
  std::vector<MPI_Status> statuses;   // of each
  std::vector<Expected> expected;     // messages among them

  std::vector<std::byte> scratch;  // what MPI cannot read or write where it belongs
  ErasedSpan result;               // where a result belongs that is in scratch, or divided
  bool in_scratch = false;
  void (*divide)(std::byte*, std::size_t, int) = nullptr;

  // As MPI reads them while the call is in flight: elements of each shard, and where it begins.
  std::array<std::vector<int>, 2> tables;

  /// Memory for as much.
  ErasedSpan scratch_for(const ErasedSpan& values) {
    if (scratch.size() < values.bytes()) scratch.resize(values.bytes());
    return {scratch.data(), values.count, values.element, values.type};
  }
  void reset(bool returns_complete) {
    blocking = returns_complete;
    complete = in_scratch = false;
    peer = -1;
    divide = nullptr;
    requests.clear();
    expected.clear();
  }
};

/// What the groups of one rank have in common: MPI itself, the calls, and the error that has ended the world, if there is one.
struct World {
  World(Session own, int most_elements) : session{std::move(own)}, most{most_elements} {}
  World(World&&) = delete;
  ~World() {
    if (failure) session.failed();
  }

  /// Throws what has ended the world.
  void check() const {
    if (failure) std::rethrow_exception(failure);
  }
  /// Ends the world of this rank. The others learn of it when its process ends.
  template <class E>
  [[noreturn]] void fail(const E& error) {
    if (!failure) failure = std::make_exception_ptr(error);
    throw error;
  }

  Call& fresh() { return calls.take(); }
  void recycle(Call& call) { calls.give_back(call); }

  Session session;
  Operations operations;
  int most;  // elements that a function of MPI counts
  Duration deadline = default_deadline;
  int ranks = 1;  // of the world
  std::exception_ptr failure;
  FreeList<Call> calls;
};

}  // namespace pdp::comm::mpi
