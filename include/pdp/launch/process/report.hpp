#pragma once

#include <cstddef>
#include <string_view>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// The channel through which a rank tells its launcher how it ended, so that one error is printed instead of one for each rank. The rank
/// sends a letter (a Problem::Kind, or finished_letter) and the message through a pipe. Before that it may send stop_letter and
/// no_stop_letter. PDP_REPORT names the pipe by its descriptor and the launcher's process id. A rank that pdp's launcher has not started
/// prints its error itself.
class Report {
 public:
  static constexpr const char* variable = "PDP_REPORT";
  static constexpr char finished_letter = 'F';
  static constexpr char stop_letter = 'S';      // from now on, the rank stops by itself after SIGTERM or SIGUSR1
  static constexpr char no_stop_letter = 'N';   // no longer
  static constexpr std::size_t longest = 4000;  // bytes; a pipe always takes this many in one write

  /// Opens the pipe that PDP_REPORT names, if pdp's launcher has started this process.
  explicit Report(const Variables& environment);

  /// Returns whether pdp's launcher has started this process.
  [[nodiscard]] bool to_launcher() const { return static_cast<bool>(pipe_); }

  /// Tells the launcher, if there is one, whether this rank stops by itself after SIGTERM or SIGUSR1.
  static void announce_stop(const Variables& environment, bool stops);
  /// Tells the launcher that this rank has ended without a problem.
  void finished() const;
  /// Tells the launcher about a problem, or prints it if there is no launcher. `size`: ranks of the job; above 1, the printed message names
  /// the rank.
  void problem(const Problem& problem, int rank, int size) const;
  /// Prints a problem to standard error. `rank` below 0: the message names no rank.
  static void print(const Problem& problem, int rank);
  /// Prints the exception that is being handled. Returns the exit code with which the program should end.
  static int print_current();

 private:
  /// Returns the descriptor of the pipe to the launcher, or -1.
  static int pipe_in(const Variables& environment);
  void write(char letter, std::string_view words) const;

  comm::Descriptor pipe_;
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/report.hpp>
#endif
