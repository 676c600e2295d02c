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

/// A call that MPI carries out, and pdp's work after it. It is reused with its memory, so pdp allocates nothing if a call is repeated.
struct Call {
  /// A message that must have the expected length.
  struct Expected {
    std::size_t request = 0;  // its index among the requests
    std::size_t bytes = 0;
    int peer = -1;
  };

  Envelope envelope;  // describes the call in errors
  int peer = -1;      // of a message, else -1
  bool blocking = false;
  bool complete = false;

  std::vector<MPI_Request> requests;  // in flight
  std::vector<MPI_Status> statuses;   // of each request
  std::vector<Expected> expected;     // the receives among the requests

  std::vector<std::byte> scratch;                          // for values that MPI cannot read or write in place
  ErasedSpan result;                                       // the destination of the result
  bool in_scratch = false;                                 // the result is in scratch memory until it is copied to its destination
  void (*divide)(std::byte*, std::size_t, int) = nullptr;  // for an average: divides the complete sum

  // Read by MPI while the call is in flight: the size and the beginning of each shard, in elements.
  std::array<std::vector<int>, 2> tables;

  /// Returns scratch memory with the size and type of `values`.
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

/// The state that all groups of one rank share: MPI itself, the calls, and the error that has ended the world, if any.
struct World {
  World(Session own, int most_elements) : session{std::move(own)}, most{most_elements} {}
  World(World&&) = delete;
  ~World() {
    if (failure) session.failed();
  }

  /// Throws the error that has ended the world, if any.
  void check() const {
    if (failure) std::rethrow_exception(failure);
  }
  /// Ends the world on this rank, and throws the error. The other ranks notice it when this process ends.
  template <class E>
  [[noreturn]] void fail(const E& error) {
    if (!failure) failure = std::make_exception_ptr(error);
    throw error;
  }

  Call& fresh() { return calls.take(); }
  void recycle(Call& call) { calls.give_back(call); }

  Session session;
  Operations operations;
  int most;  // the most elements to pass to an MPI function
  Duration deadline = default_deadline;
  int ranks = 1;  // the number of ranks of the world
  std::exception_ptr failure;
  FreeList<Call> calls;
};

}  // namespace pdp::comm::mpi
