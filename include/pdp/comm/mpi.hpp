#pragma once

#include <string_view>
#include <utility>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/mpi/calls.hpp>

namespace pdp::comm {

/// Ranks that MPI connects, by its own collectives: whatever network it knows. A program links CMake's pdp::mpi, and is started by the
/// launcher of the MPI library that it was built with (mpirun, or srun).
///
/// - All ranks use the same form of a collective, blocking or asynchronous: MPI does not let the two meet.
/// - A deadline holds for asynchronous calls and for messages. MPI's blocking collectives cannot be interrupted; when a rank dies the
///   launcher ends the job.
/// - What differs between ranks is found only in messages of different length. Checked<Mpi> compares calls.
/// - After all_reduce all ranks hold the same bits. MPI does not promise it, but advises it, and Open MPI and MPICH do so.
/// - After a Timeout a collective is still MPI's, which may yet write to its memory: end the process.
/// - A tag is below MPI's largest (MPI_TAG_UB).
class Mpi : public BasicCommunicator<MpiCalls> {
 public:
  /// What a command line calls it: --comm mpi.
  static constexpr std::string_view name{"mpi"};
  /// What starts its ranks.
  static constexpr std::string_view launcher{"mpirun"};

  /// The ranks of a communicator that the program has: pdp works on a duplicate of it, which all its ranks must make at once. The program
  /// has initialised MPI, and finalises it when this and what came of it are gone. Throws ConfigError where MPI does not run.
  explicit Mpi(MPI_Comm comm) : BasicCommunicator{MpiCalls{mpi::Session::adopt(), comm}} {}
  Mpi(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Mpi split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// All ranks that the launcher has started, or one alone. Initialises MPI unless that is done, and finalises it with the last that came
  /// of this. Throws ConfigError where MPI does not start.
  static Mpi start() {
    mpi::Session session = mpi::Session::start();
    return BasicCommunicator{MpiCalls{std::move(session), MPI_COMM_WORLD}};
  }
  /// Ends all ranks, with this exit code. Returns only where there are no others, or MPI does not run.
  static void end_job(int exit_code);
};

inline void Mpi::end_job(int exit_code) {
  int ranks = 1;
  if (mpi::is_running()) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) mpi::abort_job(exit_code);
}

static_assert(Communicator<Mpi> && HasReduceScatter<Mpi> && !FailsFast<Mpi>);

}  // namespace pdp::comm
