#pragma once

#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/mpi/calls.hpp>

namespace pdp::comm {

/// Ranks that MPI connects, over any network that it supports. Collectives are MPI's own. A program links CMake's pdp::mpi, and is started
/// by the launcher of the MPI library that it was built with (mpirun, or srun).
///
/// - All ranks must use the same form of a collective, blocking or asynchronous: MPI does not match one form with the other.
/// - The deadline applies to asynchronous calls and to messages. MPI's blocking collectives cannot be interrupted. If a rank dies, the
///   launcher ends the job.
/// - Calls that differ between ranks are detected only if they lead to messages of different lengths. Checked<Mpi> compares all
///   collectives.
/// - After all_reduce all ranks hold the same bits. MPI only recommends this, but Open MPI and MPICH do it.
/// - After a Timeout, MPI may still write to the memory of the collective: end the process.
/// - Tags must be below MPI's largest (MPI_TAG_UB).
class Mpi : public BasicCommunicator<MpiCalls> {
 public:
  /// The name for the command line: --comm mpi.
  static constexpr std::string_view name{"mpi"};
  /// The program that starts its ranks.
  static constexpr std::string_view launcher{"mpirun"};

  /// Constructs a world from a communicator of the program. pdp works on a duplicate of it, so all ranks of the communicator must call this
  /// together. The program initialises MPI, and finalises it after this object and everything made from it are gone. Throws ConfigError if
  /// MPI is not running.
  explicit Mpi(MPI_Comm comm) : BasicCommunicator{MpiCalls{mpi::Session::adopt(), comm}} {}
  Mpi(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Mpi split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// Returns the world of all ranks that the launcher has started; without a launcher, a world of one rank. If MPI is not running,
  /// initialises it, and finalises it when the returned world and everything made from it are gone. Throws ConfigError if MPI does not
  /// start.
  static Mpi start() {
    mpi::Session session = mpi::Session::start();
    return BasicCommunicator{MpiCalls{std::move(session), MPI_COMM_WORLD}};
  }
  /// Ends all ranks with this exit code. Returns only if there are no other ranks, or if MPI is not running.
  static void end_job(int exit_code);
};

inline void Mpi::end_job(int exit_code) {
  int ranks = 1;
  if (mpi::is_running()) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) mpi::abort_job(exit_code);
}

static_assert(Communicator<Mpi> && HasReduceScatter<Mpi> && !FailsFast<Mpi>);

}  // namespace pdp::comm
