#pragma once

#if !__has_include(<mpi.h>)
#error "pdp over MPI needs an MPI library (Debian: libopenmpi-dev or libmpich-dev), and the CMake target pdp::mpi"
#include <see the error above>
#endif
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::mpi {

/// Returns MPI's description of an error, in one line.
inline std::string describe_error(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  if (MPI_Error_string(code, words.data(), &length) != MPI_SUCCESS) return text("error ", code);
  std::string line;
  for (int i = 0; i < length; ++i) {
    const char letter = words[as_size(i)];
    if (letter != '\n')
      line += letter;
    else if (i + 1 < length)
      line += "; ";
  }
  return line;
}

/// Returns whether MPI can be called in this process: it is initialised and not finalised.
inline bool is_running() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

/// Ends all ranks of the job, with this exit code if the launcher passes it on. Print the reason before the call. Waits 100 ms first,
/// because MPICH's launcher drops output that is written right before the end.
[[noreturn]] inline void abort_job(int exit_code) {
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  MPI_Abort(MPI_COMM_WORLD, exit_code);  // MPI_COMM_WORLD: in MPICH, to abort another one waits for its ranks
  std::terminate();                      // MPI_Abort does not return
}

/// The lifetime of MPI in this process. If pdp has initialised MPI, pdp finalises it.
class Session {
 public:
  /// Uses MPI as initialised by the host program, which also finalises it. Throws ConfigError if MPI does not run.
  static Session adopt() {
    if (!is_running())
      throw ConfigError{"comm::Mpi{comm} needs MPI to be running in this process; construct it between MPI_Init and MPI_Finalize"};
    return Session{false};
  }
  /// Initialises MPI, unless it runs already. Throws ConfigError if that fails, or if MPI was finalised before: it starts only once in a
  /// process.
  static Session start() {
    if (is_running()) return Session{false};
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended != 0) throw ConfigError{"MPI was finalised in this process and cannot be initialised again"};
    // Other threads exist, such as a loader's, but only one at a time uses the communicator.
    int provided = MPI_THREAD_SINGLE;
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided); code != MPI_SUCCESS)
      throw ConfigError{text("MPI does not start: ", describe_error(code))};
    Session session{true};
    if (provided < MPI_THREAD_FUNNELED)
      throw ConfigError{"this MPI library does not support MPI_THREAD_FUNNELED, which pdp needs because a second thread loads data"};
    // Some libraries report errors of requests to these two communicators, not to that of the call.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return session;
  }

  Session(Session&& other) noexcept : owns_{std::exchange(other.owns_, false)}, exceptions_{other.exceptions_} {}
  Session& operator=(Session&&) = delete;
  /// Finalises MPI if this object owns it. MPI_Finalize waits for all ranks, so a rank that has failed does not call it. The launcher then
  /// ends the other ranks, because a process has ended without MPI_Finalize.
  ~Session() {
    if (!owns_ || !is_running()) return;
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 1 || (!failed_ && std::uncaught_exceptions() <= exceptions_)) MPI_Finalize();
  }

  /// Records that the world has failed, so that the destructor does not finalise MPI.
  void failed() { failed_ = true; }

 private:
  explicit Session(bool owns) : owns_{owns} {}

  bool owns_;
  bool failed_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace pdp::comm::mpi
