#pragma once

#include <cstddef>
#include <string_view>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// How a rank tells its launcher how it ended, so that one error is printed and not one for each rank: a letter and the words, through a
/// pipe that PDP_REPORT names (its descriptor and the launcher's process id). A rank that others have started prints.
class Report {
 public:
  static constexpr const char* variable = "PDP_REPORT";
  static constexpr char finished_letter = 'F';
  static constexpr std::size_t longest = 4000;  // what a pipe always takes at once

  explicit Report(const Variables& environment);

  /// Whether a launcher of pdp has started this process.
  [[nodiscard]] bool to_launcher() const { return static_cast<bool>(pipe_); }

  void finished() const;
  void problem(const Problem& problem, int rank, int size) const;
  /// `rank` below 0: of none in particular.
  static void print(const Problem& problem, int rank);
  /// Prints the exception that is being handled. Returns the exit code of the program that it ends.
  static int print_current();

 private:
  void write(char letter, std::string_view words) const;

  comm::Descriptor pipe_;
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/report.hpp>
#endif
